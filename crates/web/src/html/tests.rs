use super::text;
#[test]
fn show() {
    for name in ["docs", "blog", "reference", "forum"] {
        let html = std::fs::read_to_string(format!("tests/fixtures/{name}.html")).unwrap();
        let t = text(&html, &"https://lathe.example.org/docs/guide/stream.html".parse().unwrap());
        println!("=== {name}\n{}\n--- rest\n{}", t.main, t.rest);
    }
}
