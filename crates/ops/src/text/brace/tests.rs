use super::*;
use proptest::prelude::*;

#[track_caller]
fn gives(pattern: &str, results: &[&str]) {
    assert_eq!(expand(pattern).unwrap(), results, "{pattern}");
}

#[test]
fn alternatives() {
    gives("*.{rs,toml}", &["*.rs", "*.toml"]);
    gives("{a,b}{1,2}", &["a1", "a2", "b1", "b2"]);
    gives("x{a,b{1,2}c,d}y", &["xay", "xb1cy", "xb2cy", "xdy"]);
    gives("{a,}", &["a", ""]);
    gives("{,}", &["", ""]);
    gives("a{,.bak}", &["a", "a.bak"]);
    gives("{ä,ö}ß", &["äß", "öß"]);
    gives("", &[""]);
    gives("plain", &["plain"]);
}

#[test]
fn sequences() {
    gives("{1..3}", &["1", "2", "3"]);
    gives("{3..1}", &["3", "2", "1"]);
    gives("{-1..1}", &["-1", "0", "1"]);
    gives("{08..10}", &["08", "09", "10"]);
    gives("{1..10..4}", &["1", "5", "9"]);
    gives("{5..1..-2}", &["5", "3", "1"]);
    gives("{1..2..0}", &["1", "2"]);
    gives("{a..e}", &["a", "b", "c", "d", "e"]);
    gives("{c..a}", &["c", "b", "a"]);
    gives("{Y..b}", &["Y", "Z", "a", "b"]);
    gives("{a..c,x}", &["a..c", "x"]);
    gives("{0..0}", &["0"]);
}

#[test]
fn literals() {
    for pattern in [
        "x{a}.txt",
        "{}",
        "{a,b",
        "a,b}",
        "}{",
        "{1..b}",
        "{1..}",
        "{..}",
        "{1..2..3..4}",
        "{ab..cd}",
        "{1..x..2}",
        "{99999999999999999999..1}",
        "{é..z}",
    ] {
        gives(pattern, &[pattern]);
    }
    gives("{a,{b,c}", &["{a,b", "{a,c"]);
    gives("{a,b}}", &["a}", "b}"]);
    gives("{a{b,c}}", &["{ab}", "{ac}"]);
}

#[test]
fn backslashes() {
    gives(r"\{a,b\}", &[r"\{a,b\}"]);
    gives(r"{a\,b,c}", &[r"a\,b", "c"]);
    gives(r"{a,b\}", &[r"{a,b\}"]);
    gives(r"\\{a,b}", &[r"\\a", r"\\b"]);
    gives(r"a\", &[r"a\"]);
}

#[test]
fn remaining_braces_can_be_escaped() {
    assert_eq!(escape("x{a}"), r"x\{a\}");
    assert_eq!(escape(r"\{a"), r"\{a");
    assert_eq!(escape(r"a\"), r"a\");
}

#[test]
fn bounded() {
    assert_eq!(expand("{1..1000}").unwrap().len(), 1000);
    assert_eq!(expand("{1..1001}"), Err(Unexpanded::TooMany));
    assert_eq!(
        expand("{-9223372036854775808..9223372036854775807}"),
        Err(Unexpanded::TooMany)
    );
    assert_eq!(expand(&"{a,b}".repeat(9)).unwrap().len(), 512);
    assert_eq!(expand(&"{a,b}".repeat(1000)), Err(Unexpanded::TooMany));
    assert_eq!(
        expand(&format!("{{{}}}", ",".repeat(1000))),
        Err(Unexpanded::TooMany)
    );
    assert_eq!(
        expand(&format!("{}{{1..900}}", "x".repeat(100_000))),
        Err(Unexpanded::TooLong)
    );
    let deep = 100_000;
    assert_eq!(
        expand(&format!("{}{}", "{".repeat(deep), "}".repeat(deep))),
        Err(Unexpanded::TooDeep)
    );
    let open = "{".repeat(deep);
    gives(&open, &[&open]);
    assert!(Unexpanded::TooMany.to_string().contains("1000"));
}

proptest! {
    #[test]
    fn never_more_than_the_cap(pattern in r"[ab,{}\\.0-9]{0,80}") {
        match expand(&pattern) {
            Ok(results) => prop_assert!((1..=MAX_RESULTS).contains(&results.len())),
            Err(error) => prop_assert_eq!(error, Unexpanded::TooMany),
        }
    }

    #[test]
    fn the_count_is_the_product(groups in prop::collection::vec(1usize..5, 0..6)) {
        let pattern: String = groups.iter().map(|n| format!("{{{}x,}}", "y,".repeat(n - 1))).collect();
        let product: usize = groups.iter().map(|n| n + 1).product();
        match expand(&pattern) {
            Ok(results) => prop_assert_eq!(results.len(), product),
            Err(_) => prop_assert!(product > MAX_RESULTS),
        }
    }

    #[test]
    fn without_braces_nothing_changes(pattern in r"[a-z,.*?/\\]{0,40}") {
        prop_assert_eq!(expand(&pattern).unwrap(), vec![pattern]);
    }
}
