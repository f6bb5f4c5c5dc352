//! Styles of text, and the themes that turn them into colours.

#[cfg(test)]
mod tests;

/// Colour of text: by meaning, or as a command's output has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Red,
    Green,
    Yellow,
    Cyan,
    Keyword,
    Literal,
    Number,
    Comment,
    Function,
    Type,
    /// One of the terminal's 16 colours.
    Ansi(u8),
    /// One of the 256 colours.
    Indexed(u8),
    Rgb(u8, u8, u8),
}

/// Background of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Background {
    Added,
    AddedWord,
    Removed,
    RemovedWord,
    Code,
    Prompt,
    Selected,
}

/// Style of a piece of text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Style {
    colour: Option<Colour>,
    background: Option<Background>,
    attributes: u8,
}

const BOLD: u8 = 1;
const DIM: u8 = 2;
const ITALIC: u8 = 4;
const UNDERLINED: u8 = 8;
const STRUCK: u8 = 16;

impl Style {
    pub(crate) const PLAIN: Self = Self::with(0);
    pub(crate) const BOLD: Self = Self::with(BOLD);
    pub(crate) const DIM: Self = Self::with(DIM);
    pub(crate) const ITALIC: Self = Self::with(ITALIC);
    pub(crate) const UNDERLINED: Self = Self::with(UNDERLINED);
    pub(crate) const STRUCK: Self = Self::with(STRUCK);
    pub(crate) const RED: Self = Self::of(Colour::Red);
    pub(crate) const GREEN: Self = Self::of(Colour::Green);
    pub(crate) const YELLOW: Self = Self::of(Colour::Yellow);
    pub(crate) const CYAN: Self = Self::of(Colour::Cyan);

    const fn with(attributes: u8) -> Self {
        Self {
            colour: None,
            background: None,
            attributes,
        }
    }

    pub(crate) const fn of(colour: Colour) -> Self {
        Self {
            colour: Some(colour),
            background: None,
            attributes: 0,
        }
    }

    /// The same style on a background.
    pub(crate) const fn on(mut self, background: Background) -> Self {
        self.background = Some(background);
        self
    }

    /// The style without bold, dim and the like.
    pub(crate) const fn without_attributes(mut self) -> Self {
        self.attributes = 0;
        self
    }

    pub(crate) const fn has_colour(self) -> bool {
        self.colour.is_some()
    }

    /// The style without a colour.
    pub(crate) const fn without_colour(mut self) -> Self {
        self.colour = None;
        self
    }

    /// Combines two styles; the other has priority.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            colour: match other.colour {
                Some(colour) => Some(colour),
                None => self.colour,
            },
            background: match other.background {
                Some(background) => Some(background),
                None => self.background,
            },
            attributes: self.attributes | other.attributes,
        }
    }

    /// The escape code of the style; empty for plain text.
    pub(crate) fn code(self, palette: Palette) -> String {
        let mut codes: Vec<String> = [
            (BOLD, "1"),
            (DIM, "2"),
            (ITALIC, "3"),
            (UNDERLINED, "4"),
            (STRUCK, "9"),
        ]
        .into_iter()
        .filter(|(bit, _)| self.attributes & bit != 0)
        // Dim text has too little contrast.
        .filter(|(bit, _)| *bit != DIM || palette.theme != Theme::Contrast)
        .map(|(_, code)| code.to_owned())
        .collect();
        // Without backgrounds, what was added and removed is coloured itself.
        let colour = match self.background.filter(|_| !palette.has_backgrounds()) {
            Some(Background::Added | Background::AddedWord) => Some(Colour::Green),
            Some(Background::Removed | Background::RemovedWord) => Some(Colour::Red),
            _ => self.colour,
        };
        codes.extend(colour.and_then(|colour| palette.foreground(colour)));
        codes.extend(
            self.background
                .and_then(|ground| palette.background(ground)),
        );
        codes.join(";")
    }
}

/// Theme of the chat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Theme {
    /// Dark or light, as the terminal says; otherwise its own 16 colours.
    #[default]
    Auto,
    /// For dark backgrounds.
    Dark,
    /// For light backgrounds.
    Light,
    /// The terminal's 16 colours without dim text, for any background.
    Contrast,
    /// The terminal's 16 colours, for any background.
    Terminal,
}

impl Theme {
    /// Every theme, with its name and a description.
    pub const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Auto, "auto", "dark or light, as the terminal says"),
        (Self::Dark, "dark", "for dark backgrounds"),
        (Self::Light, "light", "for light backgrounds"),
        (
            Self::Contrast,
            "contrast",
            "high contrast, on any background",
        ),
        (Self::Terminal, "terminal", "the 16 colours of the terminal"),
    ];

    /// Returns the theme with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(_, known, _)| *known == name);
        found.map(|(theme, ..)| theme)
    }
}

/// Colours that a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    Sixteen,
    Indexed,
    Rgb,
}

/// The colours of a theme, as far as the terminal has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Palette {
    theme: Theme,
    depth: Depth,
}

/// A colour as red, green and blue, and the nearest of the 256 colours.
type Shade = (u32, u8);

impl Palette {
    /// The terminal's own 16 colours.
    #[cfg(test)]
    pub(crate) const TERMINAL: Self = Self {
        theme: Theme::Terminal,
        depth: Depth::Sixteen,
    };

    /// Creates a palette. Dark and light themes need more than 16 colours.
    pub(crate) const fn new(theme: Theme, depth: Depth) -> Self {
        let theme = match (theme, depth) {
            (Theme::Auto, _) | (Theme::Dark | Theme::Light, Depth::Sixteen) => Theme::Terminal,
            (theme, _) => theme,
        };
        Self { theme, depth }
    }

    pub(crate) const fn depth(self) -> Depth {
        self.depth
    }

    /// Whether rows have backgrounds.
    pub(crate) const fn has_backgrounds(self) -> bool {
        matches!(self.theme, Theme::Dark | Theme::Light)
    }

    fn foreground(self, colour: Colour) -> Option<String> {
        let shade = match (colour, self.theme) {
            (Colour::Ansi(number @ 0..8), _) => return Some((30 + number).to_string()),
            (Colour::Ansi(number), _) => return Some((82 + number % 16).to_string()),
            (Colour::Indexed(number), _) if self.depth >= Depth::Indexed => {
                return Some(format!("38;5;{number}"));
            }
            (Colour::Rgb(red, green, blue), _) if self.depth == Depth::Rgb => {
                return Some(format!("38;2;{red};{green};{blue}"));
            }
            // A command chose it for a terminal that has it.
            (Colour::Indexed(_) | Colour::Rgb(..), _) => return None,
            (_, Theme::Dark) => dark(colour),
            (_, Theme::Light) => light(colour),
            _ => return sixteen(colour).map(str::to_owned),
        };
        Some(self.shade(38, shade))
    }

    /// The code of a background, if the theme has one for it.
    pub(crate) fn background(self, background: Background) -> Option<String> {
        let shade = match self.theme {
            Theme::Dark => dark_background(background),
            Theme::Light => light_background(background),
            // Reversed: readable on every background.
            _ => {
                let is_word = matches!(background, Background::AddedWord | Background::RemovedWord);
                return is_word.then(|| "7".to_owned());
            }
        };
        Some(self.shade(48, shade))
    }

    fn shade(self, layer: u8, (rgb, index): Shade) -> String {
        match self.depth {
            Depth::Rgb => format!(
                "{layer};2;{};{};{}",
                rgb >> 16 & 255,
                rgb >> 8 & 255,
                rgb & 255
            ),
            _ => format!("{layer};5;{index}"),
        }
    }
}

/// Users choose these 16 colours to be readable on their background.
fn sixteen(colour: Colour) -> Option<&'static str> {
    Some(match colour {
        Colour::Red => "31",
        Colour::Green | Colour::Literal => "32",
        Colour::Yellow => "33",
        Colour::Number | Colour::Cyan | Colour::Type => "36",
        Colour::Keyword => "35",
        Colour::Function => "34",
        Colour::Comment => "2",
        Colour::Ansi(_) | Colour::Indexed(_) | Colour::Rgb(..) => return None,
    })
}

fn dark(colour: Colour) -> Shade {
    match colour {
        Colour::Red => (0x00ff_7b72, 210),
        Colour::Green => (0x007e_e787, 114),
        Colour::Yellow => (0x00e3_b341, 179),
        Colour::Cyan => (0x0076_c7d8, 80),
        Colour::Keyword => (0x00c7_92ea, 176),
        Colour::Literal => (0x00a5_d6a7, 151),
        Colour::Number => (0x00f7_8c6c, 209),
        Colour::Function => (0x0082_aaff, 111),
        Colour::Type => (0x00ff_cb6b, 221),
        _ => (0x0081_8b98, 245),
    }
}

fn light(colour: Colour) -> Shade {
    match colour {
        Colour::Red => (0x00c4_1e2a, 160),
        Colour::Green => (0x0011_7a37, 28),
        Colour::Yellow => (0x008a_5a00, 94),
        Colour::Cyan => (0x0007_6678, 24),
        Colour::Keyword => (0x007a_3eb8, 91),
        Colour::Literal => (0x0023_6b2e, 22),
        Colour::Number => (0x00a0_3c00, 130),
        Colour::Function => (0x0005_50ae, 25),
        Colour::Type => (0x0085_5800, 94),
        _ => (0x0065_6d76, 242),
    }
}

fn dark_background(background: Background) -> Shade {
    match background {
        Background::Added => (0x0012_3020, 22),
        Background::AddedWord => (0x0023_6b3c, 28),
        Background::Removed => (0x003b_181c, 52),
        Background::RemovedWord => (0x0084_2d33, 88),
        Background::Code => (0x001c_2129, 234),
        Background::Prompt => (0x0026_2c36, 236),
        Background::Selected => (0x002a_3f5f, 24),
    }
}

fn light_background(background: Background) -> Shade {
    match background {
        Background::Added => (0x00dc_f7e3, 194),
        Background::AddedWord => (0x00a3_e8b5, 157),
        Background::Removed => (0x00ff_e7e6, 224),
        Background::RemovedWord => (0x00ff_bdb8, 217),
        Background::Code => (0x00f2_f4f7, 255),
        Background::Prompt => (0x00e9_edf2, 254),
        Background::Selected => (0x00d3_e5fa, 153),
    }
}
