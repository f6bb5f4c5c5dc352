//! Descriptive statistics as a tool, and a tool with a schema that is only known at run
//! time.
//!
//! `cargo run -p haft --example stats`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use haft::prelude::*;
use haft::{FromSchema, Runtime};
use std::sync::Arc;

/// Compute descriptive statistics (min, max, mean, stddev) on a list of
/// numbers.
#[derive(Deserialize, JsonSchema)]
struct Args {
    /// List of numeric values.
    numbers: Vec<f64>,
    /// Decimal places in the output.
    #[serde(default = "two")]
    #[schemars(range(min = 0, max = 10))]
    precision: usize,
}

const fn two() -> usize {
    2
}

struct Stats;

impl Tool for Stats {
    const NAME: &'static str = "stats";
    const EFFECT: Effect = Effect::Pure;
    type Args = Args;

    async fn call(&self, args: Args, _cx: &Context) -> Result<Reply, Error> {
        let numbers = &args.numbers;
        if numbers.is_empty() {
            return Err(Error::failed("numbers must be a non-empty array"));
        }
        #[expect(clippy::cast_precision_loss, reason = "no caller sends 2^52 numbers")]
        let n = numbers.len() as f64;
        let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mean = numbers.iter().sum::<f64>() / n;
        let stddev = (numbers
            .iter()
            .map(|number| (number - mean).powi(2))
            .sum::<f64>()
            / n)
            .sqrt();
        let p = args.precision;
        let text =
            format!("n={n}  min={least:.p$}  max={most:.p$}  mean={mean:.p$}  stddev={stddev:.p$}");
        Ok(Reply::from(text)
            .detail("n", numbers.len())
            .detail("min", least)
            .detail("max", most)
            .detail("mean", mean)
            .detail("stddev", stddev))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::builder().preset("none").tool(Stats).build()?;
    println!(
        "{}",
        runtime
            .call("stats", json!({ "numbers": [1, 2, 3, 4, 5] }))
            .await
            .text()
    );
    println!(
        "{}",
        runtime.call("stats", json!({ "numbers": [] })).await.text()
    );
    println!(
        "{}",
        runtime
            .call("stats", json!({ "numbers": [1, "two"] }))
            .await
            .text()
    );

    // Added during the session, with a schema that arrived as data.
    let schema = json!({
        "type": "object",
        "properties": { "numbers": { "type": "array", "items": { "type": "number" } } },
        "required": ["numbers"],
    });
    let sum = FromSchema::new(
        "sum",
        "Add numbers.",
        schema,
        Effect::Pure,
        |arguments, _cx| async move {
            let numbers = arguments["numbers"].as_array().cloned().unwrap_or_default();
            let sum: f64 = numbers.iter().filter_map(serde_json::Value::as_f64).sum();
            Ok(Reply::from(sum.to_string()))
        },
    )?;
    runtime.tools().add_any(Arc::new(sum))?;
    println!(
        "{}",
        runtime
            .call("sum", json!({ "numbers": [1.5, 2] }))
            .await
            .text()
    );
    Ok(())
}
