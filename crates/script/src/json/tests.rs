use mlua::{Lua, Table};
use proptest::prelude::*;
use serde::de::DeserializeSeed;
use serde_json::Value;

use super::{Decoder, Nulls, encode};

fn state() -> (Lua, Table) {
    let lua = Lua::new();
    let list = lua.create_table().unwrap();
    (lua, list)
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("JSON has no others", |number| number.is_finite())
            .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        let name = prop_oneof![any::<String>(), "[0-9]{1,2}", Just(String::new())];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((name, inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn json_survives_lua(value in values()) {
        let (lua, list) = state();
        let decoder = Decoder { lua: &lua, list: &list, nulls: Nulls::Keep };
        let inside = decoder.text(value.to_string().as_bytes()).unwrap();
        let text = encode(&inside, &list, 1 << 20).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Value>(&text).unwrap(), &value);
        // Decoding a JSON value instead of text gives the same text again.
        let inside = decoder.deserialize(value).unwrap();
        prop_assert_eq!(&encode(&inside, &list, 1 << 20).unwrap(), &text);
        let again = decoder.text(text.as_bytes()).unwrap();
        prop_assert_eq!(encode(&again, &list, 1 << 20).unwrap(), text);
    }

    #[test]
    fn no_text_makes_the_decoder_panic(text in any::<Vec<u8>>()) {
        let (lua, list) = state();
        let decoder = Decoder { lua: &lua, list: &list, nulls: Nulls::Keep };
        prop_assert_eq!(decoder.text(&text).is_ok(), serde_json::from_slice::<Value>(&text).is_ok());
    }
}

#[test]
fn integers_that_are_too_large_for_lua_become_floats() {
    let (lua, list) = state();
    let decoder = Decoder {
        lua: &lua,
        list: &list,
        nulls: Nulls::Keep,
    };
    let inside = decoder.text(b"18446744073709551615").unwrap();
    assert_eq!(
        encode(&inside, &list, 100).unwrap(),
        "1.8446744073709552e+19"
    );
}
