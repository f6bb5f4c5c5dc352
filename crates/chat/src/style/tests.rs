use super::{Background, Colour, Depth, Palette, Style, Theme};

#[test]
fn every_theme_has_a_code_for_every_meaning() {
    let meanings = [Colour::Red, Colour::Keyword, Colour::Comment];
    for (theme, name, _) in Theme::ALL {
        assert_eq!(Theme::named(name), Some(theme));
        for depth in [Depth::Sixteen, Depth::Indexed, Depth::Rgb] {
            let palette = Palette::new(theme, depth);
            for colour in meanings {
                assert_ne!(Style::of(colour).code(palette), "", "{name} {colour:?}");
            }
            // 16 colours mean no others.
            let code = Style::RED.on(Background::Added).code(palette);
            let others = code.contains("8;5;") || code.contains("8;2;");
            assert_eq!(others, palette.has_backgrounds(), "{name} {code}");
            assert!(depth != Depth::Sixteen || !others, "{name} {code}");
        }
    }
    assert_eq!(Theme::named("blue"), None);
}

#[test]
fn high_contrast_has_no_dim_text() {
    let contrast = Palette::new(Theme::Contrast, Depth::Rgb);
    assert_eq!(Style::DIM.code(contrast), "");
    assert_eq!(Style::DIM.code(Palette::TERMINAL), "2");
}

#[test]
fn colours_of_commands_are_kept_where_the_terminal_has_them() {
    let rgb = Style::of(Colour::Rgb(1, 2, 3));
    assert_eq!(
        rgb.code(Palette::new(Theme::Dark, Depth::Rgb)),
        "38;2;1;2;3"
    );
    assert_eq!(rgb.code(Palette::new(Theme::Dark, Depth::Indexed)), "");
    assert_eq!(Style::of(Colour::Ansi(9)).code(Palette::TERMINAL), "91");
    assert_eq!(Style::of(Colour::Ansi(1)).code(Palette::TERMINAL), "31");
}
