use super::super::pattern::compile;
use super::super::{Case, Pattern};
use crate::Result;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use proptest::prelude::*;

fn regex(pattern: &str) -> Result<RegexMatcher> {
    compile(&Pattern::Regex(pattern.to_owned()), Case::Sensitive)
}

fn matches(pattern: &str, text: &str) -> bool {
    regex(pattern)
        .unwrap_or_else(|error| panic!("{pattern}: {error}"))
        .is_match(text.as_bytes())
        .unwrap()
}

#[test]
fn go_quotes_are_translated() {
    for (pattern, text, expected) in [
        (r"\Qa.b(c\E", "a.b(c", true),
        (r"\Qa.b\E", "axb", false),
        (r"x\Q[*]\E+y", "x[*]]y", true),
        (r"\Qopen[end", "open[end", true),
        (r"\\Q.\\E", r"\Qx\E", true),
        (r"a\Q\Eb", "ab", true),
        (r"\Q(\E|\Q)\E", ")", true),
        (r"(?x)\Qa b\E", "a b", true),
    ] {
        assert_eq!(matches(pattern, text), expected, "{pattern} in {text}");
    }
}

#[test]
fn classes_match_as_in_go() {
    for (pattern, among, not) in [
        ("^[&&]$", "&", "a"),
        ("^[a&&b]$", "a&b", "c"),
        ("^[~~]$", "~", "a"),
        ("^[a~~b]$", "a~b", "c"),
        ("^[[]$", "[", "]a"),
        ("^[^[]$", "a]", "["),
        ("^[a[]$", "a[", "]"),
        ("^[][]$", "[]", "a"),
        ("^[^][]$", "a", "[]"),
        ("^[+--]$", "+,-", "."),
        ("^[--/]$", "-./", "0"),
        ("^[a-c-e]$", "abc-e", "d"),
        ("^[a-]$", "a-", "b"),
        (r"^[\d-z]$", "0-z", "a"),
        (r"^[\w.-]$", "a.-", "!"),
        (r"^[\]\[\-]$", "[]-", "a"),
        (r"^[\<\>]$", "<>", "a"),
        ("^[[:alpha:]_]$", "a_", "1:"),
        ("^[[:^alpha:]]$", "1", "a"),
        ("^[[:alpha]$", "[:alph", "]b"),
        (r"^[\pL&]$", "aé&", "1"),
        (r"^[\p{Greek}-]$", "α-", "a"),
        (r"^[\x41-\x{43}]$", "ABC", "D"),
        (r"^[\101-\103]$", "ABC", "D"),
        (r"^[{}#]$", "{}#", "a"),
        (r"^[\d{]$", "5{", "}"),
        (r"^[\Q&&[\E]$", "&[", "a"),
    ] {
        for c in among.chars() {
            assert!(
                matches(pattern, &c.to_string()),
                "{pattern} should match {c}"
            );
        }
        for c in not.chars() {
            assert!(
                !matches(pattern, &c.to_string()),
                "{pattern} should not match {c}"
            );
        }
    }
    assert!(matches("^[[a]c]$", "ac]") && !matches("^[[a]c]$", "a"));
    assert!(matches("x[[]y", "x[y"));
}

#[test]
fn octal_numbers_are_translated() {
    assert!(matches(r"^\146\157\157$", "foo"));
    assert!(matches(r"a\07b", "a\u{7}b") && matches(r"\1011", "A1"));
    assert!(matches(r"^\60\0601$", "001"));
    let error = |pattern: &str| regex(pattern).unwrap_err().to_string();
    assert!(error(r"(a)\1").contains("backreferences"));
    assert!(error(r"(a)\18").contains("backreferences"));
    assert!(matches(r"\0", "\0"));
}

#[test]
fn patterns_invalid_in_go_are_rejected() {
    for pattern in [
        "[", "[]", "[^]", "[a", "[b-a]", "[a--b]", r"[a-\d]", r"[\q]",
    ] {
        assert!(regex(pattern).is_err(), "{pattern}");
    }
    let error = regex("[[:letter:]]").unwrap_err().to_string();
    assert!(
        error.contains("`[:letter:]` is not a character class"),
        "{error}"
    );
}

#[test]
fn a_brace_that_is_not_a_count_is_literal() {
    for (pattern, text) in [
        ("interface{}", "interface{}"),
        ("a{,2}", "a{,2}"),
        ("[{]{2}", "{{"),
        ("^a{2,}$", "aaa"),
    ] {
        assert!(matches(pattern, text), "{pattern} in {text}");
    }
}

/// A direct implementation of Go's classes as documented: no nesting, no operators.
fn reference(class: &str) -> Option<Box<dyn Fn(char) -> bool>> {
    let mut rest: Vec<char> = class.chars().rev().collect();
    assert_eq!(rest.pop(), Some('['));
    let negated = rest.last() == Some(&'^') && rest.pop().is_some();
    let mut ranges: Vec<(char, char)> = Vec::new();
    let mut is_first = true;
    loop {
        let c = rest.pop()?;
        if c == ']' && !is_first {
            break;
        }
        is_first = false;
        let member = |c: char, rest: &mut Vec<char>| match c {
            '\\' => rest.pop().filter(|c| !c.is_ascii_alphanumeric()),
            c => Some(c),
        };
        if c == '[' && rest.last() == Some(&':') {
            let behind: String = rest.iter().rev().collect();
            let name = behind.strip_prefix(':').unwrap_or_default();
            if let Some((name, behind)) = name.split_once(":]") {
                if name != "digit" {
                    return None;
                }
                ranges.push(('0', '9'));
                rest = behind.chars().rev().collect();
                continue;
            }
        }
        if c == '\\' && rest.last() == Some(&'d') {
            rest.pop();
            ranges.push(('0', '9'));
            continue;
        }
        let low = member(c, &mut rest)?;
        let mut high = low;
        if let [.., after, '-'] = rest.as_slice()
            && *after != ']'
        {
            rest.pop();
            let c = rest.pop()?;
            high = member(c, &mut rest)?;
        }
        if high < low {
            return None;
        }
        ranges.push((low, high));
    }
    if !rest.is_empty() {
        return None;
    }
    Some(Box::new(move |c| {
        ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != negated
    }))
}

proptest! {
    #[test]
    fn classes_match_the_same_characters_as_in_go(
        inside in proptest::collection::vec(
            prop_oneof![
                Just("["), Just("]"), Just("^"), Just("-"), Just("&"), Just("&&"), Just("~~"),
                Just("--"), Just("a"), Just("c"), Just("z"), Just("0"), Just(":"), Just("\\]"),
                Just("\\\\"), Just("\\-"), Just("\\d"), Just("[:digit:]"), Just("a-c"),
            ],
            0..7,
        ),
    ) {
        let class = format!("[{}]", inside.concat());
        // A class that ends early leaves other text after it.
        if let Some(has) = reference(&class) {
            let matcher = regex(&format!("^{class}$")).unwrap();
            for c in "[]^-&~:\\abcdz0159 é".chars() {
                let found = matcher.is_match(c.to_string().as_bytes()).unwrap();
                prop_assert_eq!(found, has(c), "{} {}", class, c);
            }
        }
    }
}
