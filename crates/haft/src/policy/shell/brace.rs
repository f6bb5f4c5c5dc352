//! Brace expansion: `{a,b}c` is the two words `ac` and `bc`.

use super::word::Item;
use super::{Script, Stop};

/// Maximum number of words that one word can become.
const WORDS: usize = 64;
/// Maximum nesting of braces.
const NESTED: usize = 8;

/// Expands a word. If its braces are ambiguous, the word becomes unknown.
pub(super) fn expand(items: &[Item], script: &mut Script) -> Result<Vec<Vec<Item>>, Stop> {
    let braces = items.iter().filter(|item| **item == Item::Plain('{'));
    match braces.count() {
        0 => return Ok(vec![items.to_vec()]),
        1..=WORDS => {}
        _ => return Ok(vec![vec![Item::Hole { splits: true }]]),
    }
    // The resulting words are counted before they are created.
    let commas = items.iter().filter(|item| **item == Item::Plain(','));
    let most = 1 << commas.count().min(WORDS.ilog2() as usize);
    script.charge(items.len().saturating_mul(most))?;
    Ok(match expanded(items, 0) {
        Ok(words) => words,
        Err(Uncertain) => vec![vec![Item::Hole { splits: true }]],
    })
}

struct Uncertain;

fn expanded(items: &[Item], depth: usize) -> Result<Vec<Vec<Item>>, Uncertain> {
    if depth > NESTED {
        return Err(Uncertain);
    }
    let mut words: Vec<Vec<Item>> = vec![Vec::new()];
    let mut rest = items;
    while let Some((item, behind)) = rest.split_first() {
        rest = behind;
        if *item == Item::Plain('}') && depth == 0 && words.len() > 1 {
            return Err(Uncertain);
        }
        if *item != Item::Plain('{') {
            words.iter_mut().for_each(|word| word.push(*item));
            continue;
        }
        let Some((inside, after)) = braced(behind) else {
            // Without an end it is a plain character, unless it could have been more.
            if behind.contains(&Item::Plain(',')) || has_range(behind) {
                return Err(Uncertain);
            }
            words.iter_mut().for_each(|word| word.push(*item));
            continue;
        };
        rest = after;
        let parts = split(inside);
        if parts.len() == 1 {
            if has_range(inside) || inside.contains(&Item::Plain('{')) {
                return Err(Uncertain);
            }
            for word in &mut words {
                word.push(Item::Plain('{'));
                word.extend(inside);
                word.push(Item::Plain('}'));
            }
            continue;
        }
        let mut choices = Vec::new();
        for part in parts {
            choices.extend(expanded(part, depth + 1)?);
        }
        if words.len() * choices.len() > WORDS {
            return Err(Uncertain);
        }
        words = words
            .iter()
            .flat_map(|word| {
                choices
                    .iter()
                    .map(move |choice| word.iter().chain(choice).copied().collect())
            })
            .collect();
    }
    // An empty word among several disappears.
    if depth == 0 && words.len() > 1 {
        words.retain(|word| !word.is_empty());
    }
    Ok(words)
}

/// Returns the text before and after the closing brace.
fn braced(items: &[Item]) -> Option<(&[Item], &[Item])> {
    let mut open = 0usize;
    for (at, item) in items.iter().enumerate() {
        match item {
            Item::Plain('{') => open += 1,
            Item::Plain('}') if open == 0 => {
                return Some((items.get(..at)?, items.get(at + 1..)?));
            }
            Item::Plain('}') => open -= 1,
            _ => {}
        }
    }
    None
}

/// Splits at commas outside inner braces.
fn split(items: &[Item]) -> Vec<&[Item]> {
    let mut open = 0usize;
    items
        .split(|item| {
            match item {
                Item::Plain('{') => open += 1,
                Item::Plain('}') => open = open.saturating_sub(1),
                _ => {}
            }
            *item == Item::Plain(',') && open == 0
        })
        .collect()
}

fn has_range(items: &[Item]) -> bool {
    items
        .windows(2)
        .any(|pair| pair == [Item::Plain('.'), Item::Plain('.')])
}
