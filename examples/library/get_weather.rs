//! A custom tool, compiled in: typed arguments, updates while it runs, details for the
//! host.
//!
//! `cargo run -p haft --example get_weather`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use haft::prelude::*;
use haft::{Call, Content, Runtime};

/// Get the current weather for a city.
#[derive(Deserialize, JsonSchema)]
struct Args {
    /// City name, e.g. `San Francisco`.
    city: String,
    /// Temperature units.
    #[serde(default)]
    units: Units,
}

#[derive(Deserialize, JsonSchema, serde::Serialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Units {
    #[default]
    Celsius,
    Fahrenheit,
}

struct GetWeather {
    /// Data of the service. A real tool would hold a client and a key.
    cities: Vec<(&'static str, f64, &'static str)>,
}

impl Tool for GetWeather {
    const NAME: &'static str = "get_weather";
    const EFFECT: Effect = Effect::Pure;
    type Args = Args;

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        cx.update(format!("Fetching weather for {}...", args.city));
        let (_, celsius, condition) = self
            .cities
            .iter()
            .find(|(city, ..)| city.eq_ignore_ascii_case(&args.city))
            .ok_or_else(|| Error::failed(format!("city not found: {}", args.city)))?;
        let (degrees, symbol) = match args.units {
            Units::Celsius => (*celsius, "C"),
            Units::Fahrenheit => (celsius * 1.8 + 32.0, "F"),
        };
        Ok(Reply::from(format!(
            "Weather in {}: {degrees:.0}°{symbol}, {condition}",
            args.city
        ))
        .detail("raw_value", *celsius))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let weather = GetWeather {
        cities: vec![("Berlin", 11.5, "cloudy"), ("Lima", 19.0, "clear")],
    };
    let runtime = Runtime::builder().preset("none").tool(weather).build()?;

    for arguments in [
        json!({ "city": "Berlin", "units": "fahrenheit" }),
        json!({ "city": "Atlantis" }),
        json!({ "units": "kelvin" }),
    ] {
        let call = Call::new("get_weather", arguments).on_update(|update| {
            for block in update.content {
                if let Content::Text { text } = block {
                    println!("… {text}");
                }
            }
        });
        let reply = runtime.run(call).await;
        println!(
            "{} {}",
            reply.text(),
            serde_json::Value::Object(reply.details().clone())
        );
    }
    Ok(())
}
