//! The screen: finished lines scroll up and stay, and a small live region below them is
//! redrawn. Each frame is one write.

use crate::styled_text::{Line, Styling, width};
use std::fmt::Write as _;
use std::io::{self, Write};

/// Synchronized update, and a hidden cursor; terminals without support ignore it.
const BEGIN_FRAME: &str = "\x1b[?2026h\x1b[?25l";
const END_FRAME: &str = "\x1b[?25h\x1b[?2026l";

/// The live region.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveRegion {
    /// Rows, none wider than the screen.
    pub(crate) rows: Vec<Line>,
    /// Cursor position: row and column.
    pub(crate) cursor: (usize, usize),
}

/// Writer of lines and frames to a terminal.
pub(crate) struct Screen<W: Write> {
    out: W,
    styling: Styling,
    columns: usize,
    height: usize,
    pending_output: String,
    /// The live region as last drawn: rendered rows and their widths.
    drawn: Vec<(String, usize)>,
    cursor: (usize, usize),
    /// Width of the terminal at that time.
    drawn_columns: usize,
    /// Whether every row must be redrawn.
    needs_redraw: bool,
}

impl<W: Write> Screen<W> {
    /// Creates a screen of this size, in columns and rows.
    pub(crate) fn new(out: W, styling: Styling, size: (usize, usize)) -> Self {
        Self {
            out,
            styling,
            columns: size.0.max(1),
            height: size.1.max(2),
            pending_output: String::new(),
            drawn: Vec::new(),
            cursor: (0, 0),
            drawn_columns: 0,
            needs_redraw: false,
        }
    }

    /// Changes the colours of everything that is drawn from now on.
    pub(crate) fn set_styling(&mut self, styling: Styling) {
        self.styling = styling;
        self.needs_redraw = true;
    }

    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    pub(crate) fn height(&self) -> usize {
        self.height
    }

    pub(crate) fn resize(&mut self, size: (usize, usize)) {
        let size = (size.0.max(1), size.1.max(2));
        if size != (self.columns, self.height) {
            (self.columns, self.height) = size;
            self.needs_redraw = true;
        }
    }

    /// Number of rows from the start of the live region to the cursor. A terminal that
    /// became narrower has wrapped its rows, so there are more than were drawn.
    fn rows_above(&self) -> usize {
        let (row, column) = self.cursor;
        if self.columns >= self.drawn_columns {
            return row;
        }
        let rows_of = |width: usize| width.saturating_sub(1) / self.columns + 1;
        let before = self.drawn.iter().take(row);
        let before: usize = before.map(|(_, width)| rows_of(*width)).sum();
        before + column / self.columns
    }

    /// Prints finished lines above the live region, with the next frame.
    pub(crate) fn print<'a>(&mut self, lines: impl IntoIterator<Item = &'a Line>) {
        for line in lines {
            for row in line.rows(self.columns) {
                self.pending_output
                    .push_str(&row.render_row(self.styling, self.columns));
                self.pending_output.push_str("\r\n");
            }
        }
    }

    /// Sends a sequence that takes no space, such as a bell.
    pub(crate) fn send_sequence(&mut self, sequence: &str) -> io::Result<()> {
        self.out.write_all(sequence.as_bytes())?;
        self.out.flush()
    }

    /// Draws a frame; writes nothing if nothing has changed.
    pub(crate) fn draw(&mut self, live: &LiveRegion) -> io::Result<()> {
        // The last row of the screen stays free, so that a frame never scrolls its own
        // beginning away.
        let most = self.height.saturating_sub(1).max(1);
        let skipped = live.rows.len().saturating_sub(most);
        let rows: Vec<(String, usize)> = live
            .rows
            .iter()
            .skip(skipped)
            .map(|row| row.truncated(self.columns))
            .map(|row| (row.render_row(self.styling, self.columns), row.width()))
            .collect();
        let cursor = (live.cursor.0.saturating_sub(skipped), live.cursor.1);
        let fresh = self.needs_redraw || !self.pending_output.is_empty();
        if !fresh && rows == self.drawn && cursor == self.cursor {
            return Ok(());
        }
        let mut frame = String::from(BEGIN_FRAME);
        move_up(&mut frame, self.rows_above());
        frame.push('\r');
        if fresh {
            frame.push_str("\x1b[J");
            frame.push_str(&std::mem::take(&mut self.pending_output));
        }
        // No wrapping: the terminal may just have become narrower without reporting it yet.
        frame.push_str("\x1b[?7l");
        for (at, row) in rows.iter().enumerate() {
            if at > 0 {
                frame.push_str("\r\n");
            }
            if fresh || self.drawn.get(at) != Some(row) {
                frame.push_str("\x1b[2K");
                frame.push_str(&row.0);
            }
        }
        frame.push_str("\x1b[?7h");
        if !fresh && self.drawn.len() > rows.len() {
            frame.push_str("\r\n\x1b[J\x1b[A");
        }
        move_up(
            &mut frame,
            rows.len().saturating_sub(1).saturating_sub(cursor.0),
        );
        frame.push('\r');
        if cursor.1 > 0 {
            // Writing to a String cannot fail.
            let _ = write!(frame, "\x1b[{}C", cursor.1);
        }
        frame.push_str(END_FRAME);
        (self.drawn, self.cursor, self.needs_redraw) = (rows, cursor, false);
        self.drawn_columns = self.columns;
        self.out.write_all(frame.as_bytes())?;
        self.out.flush()
    }

    /// Removes the live region; the next output replaces it.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.needs_redraw = true;
        self.draw(&LiveRegion::default())
    }

    /// Forgets what was drawn: another program has written to the terminal, and the cursor
    /// is at the start of a row.
    pub(crate) fn forget(&mut self) {
        self.drawn.clear();
        self.cursor = (0, 0);
        self.needs_redraw = true;
    }

    /// Clears the screen and moves the live region to its top.
    pub(crate) fn clear_all(&mut self) {
        self.forget();
        self.pending_output = format!("\x1b[H\x1b[2J{}", self.pending_output);
    }
}

fn move_up(frame: &mut String, rows: usize) {
    if rows > 0 {
        let _ = write!(frame, "\x1b[{rows}A");
    }
}

/// Truncates a line in the middle, so that both ends can be read.
pub(crate) fn truncate_middle(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let letters: Vec<char> = text.chars().collect();
    let half = columns.saturating_sub(1) / 2;
    let head: String = letters.iter().take(half).collect();
    let tail: String = letters
        .iter()
        .skip(letters.len().saturating_sub(half))
        .collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::styled_text::{Palette, Style};

    struct Terminal(vt100::Parser);

    impl Write for Terminal {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.process(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn screen(rows: u16, columns: u16) -> Screen<Terminal> {
        let sides = (rows.try_into().unwrap(), columns.try_into().unwrap());
        let terminal = Terminal(vt100::Parser::new(sides.0, sides.1, 1000));
        let size = (usize::from(columns), usize::from(rows));
        Screen::new(terminal, Styling::Ansi(Palette::TERMINAL), size)
    }

    fn live(rows: &[&str]) -> LiveRegion {
        LiveRegion {
            rows: rows.iter().map(|row| Line::plain(row)).collect(),
            cursor: (rows.len() - 1, 1),
        }
    }

    fn seen(screen: &Screen<Terminal>) -> Vec<String> {
        let screen = screen.out.0.screen();
        let rows = screen.rows(0, screen.size().1.get());
        let rows: Vec<String> = rows.map(|row| row.trim_end().to_owned()).collect();
        let last = rows.iter().rposition(|row| !row.is_empty());
        rows.into_iter()
            .take(last.map_or(0, |last| last + 1))
            .collect()
    }

    #[test]
    fn finished_lines_stay_above_the_live_region() {
        let mut screen = screen(6, 10);
        screen.draw(&live(&["one", "two", "> "])).unwrap();
        assert_eq!(seen(&screen), ["one", "two", ">"]);
        screen.print(&[Line::new("done at last", Style::BOLD)]);
        screen.draw(&live(&["two", "> "])).unwrap();
        assert_eq!(seen(&screen), ["done at", "last", "two", ">"]);
        assert_eq!(screen.out.0.screen().cursor_position(), (3, 1));
        screen.draw(&live(&["> x"])).unwrap();
        assert_eq!(seen(&screen), ["done at", "last", "> x"]);
        for number in 0..8 {
            screen.print(&[Line::plain(&format!("line {number}"))]);
            screen.draw(&live(&["spin", "> "])).unwrap();
        }
        assert_eq!(
            seen(&screen),
            ["line 4", "line 5", "line 6", "line 7", "spin", ">"]
        );
        screen.clear().unwrap();
        assert_eq!(seen(&screen), ["line 4", "line 5", "line 6", "line 7"]);
    }

    #[test]
    fn rows_that_fill_the_screen_leave_nothing_behind() {
        let mut screen = screen(5, 4);
        screen.draw(&live(&["abcd", "efgh"])).unwrap();
        screen.print(&[Line::verbatim("12345678", Style::PLAIN)]);
        screen.draw(&live(&["abcd", "xy"])).unwrap();
        assert_eq!(seen(&screen), ["1234", "5678", "abcd", "xy"]);
        screen.draw(&live(&["too wide", "日本語"])).unwrap();
        assert_eq!(seen(&screen), ["1234", "5678", "too…", "日…"]);
    }

    #[test]
    fn a_live_region_taller_than_the_screen_shows_its_end() {
        let mut screen = screen(4, 10);
        screen.print(&[Line::plain("kept")]);
        screen.draw(&live(&["1", "2", "3", "4", "5"])).unwrap();
        screen.draw(&live(&["1", "2", "3", "4", "6"])).unwrap();
        assert_eq!(seen(&screen), ["kept", "3", "4", "6"]);
    }

    #[test]
    fn redraws_rows_wrapped_by_a_narrower_terminal() {
        let mut screen = Screen::new(Vec::new(), Styling::Plain, (40, 10));
        screen
            .draw(&live(&["x".repeat(30).as_str(), "12345", "> "]))
            .unwrap();
        screen.out.clear();
        // Resized twice before it is drawn.
        screen.resize((20, 10));
        screen.resize((10, 10));
        screen.draw(&live(&["short", "> "])).unwrap();
        let frame = String::from_utf8(std::mem::take(&mut screen.out)).unwrap();
        // One row became three; with the next one, four rows above the cursor.
        assert!(
            frame.starts_with(&format!("{BEGIN_FRAME}\x1b[4A\r\x1b[J")),
            "{frame:?}"
        );
        screen.resize((80, 10));
        screen.draw(&live(&["short", "> "])).unwrap();
        let frame = String::from_utf8(screen.out).unwrap();
        assert!(
            frame.starts_with(&format!("{BEGIN_FRAME}\x1b[1A\r\x1b[J")),
            "{frame:?}"
        );
    }

    #[test]
    fn an_unchanged_frame_is_not_written() {
        let mut screen = screen(4, 10);
        screen.draw(&live(&["a", "b"])).unwrap();
        screen.out.0.process(b"\r\x1b[2KMARK");
        screen.draw(&live(&["a", "b"])).unwrap();
        assert_eq!(seen(&screen), ["a", "MARK"]);
    }
}
