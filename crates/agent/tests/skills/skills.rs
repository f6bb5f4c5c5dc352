//! Loading and reading skills.

use crate::{Bed, runtime};
use haft::Runtime;
use haft_agent::{SkillFolder, Skills};
use serde_json::json;
use std::time::{Duration, Instant};

fn skill(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}.\n---\n\n{body}\n")
}

async fn loaded(bed: &Bed) -> (Skills, Vec<String>) {
    Skills::load(&runtime(), &[SkillFolder::named(bed.path("skills"))]).await
}

fn names(skills: &Skills) -> Vec<&str> {
    let names = skills.list().iter().map(|skill| skill.name.as_str());
    names.collect()
}

#[tokio::test]
async fn skills_are_listed_with_descriptions_and_read_on_demand() {
    let bed = Bed::new();
    bed.file("skills/pdf/SKILL.md", skill("pdf", "Use fill.py."))
        .file("skills/pdf/scripts/fill.py", "print('x')\n")
        .file("skills/pdf/forms.md", "A form.\r\nTwo lines.\n")
        .file("skills/deploy/SKILL.md", skill("deploy", "Carefully."))
        .file("skills/notes.md", "not a skill")
        .file("skills/empty/README.md", "not one either");
    let (skills, warnings) = loaded(&bed).await;
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(names(&skills), ["deploy", "pdf"]);
    assert_eq!(
        skills.section(),
        "## Skills\nInstructions for certain kinds of work. If one fits the task, read it with the tool \
         skill before you start.\n- deploy: Does deploy.\n- pdf: Does pdf."
    );
    let runtime = Runtime::builder().dir(bed.path("")).build().unwrap();
    skills.add_to(&runtime).unwrap();
    assert_eq!(runtime.effect_of("skill"), Some(haft::Effect::Read));
    let reply = runtime.call("skill", json!({ "name": "pdf" })).await;
    let folder = bed.path("skills/pdf");
    assert_eq!(
        reply.text(),
        format!(
            "Skill pdf, in {}\nOther files: forms.md, scripts/fill.py\n\nUse fill.py.",
            folder.display()
        )
    );
    let file = json!({ "name": "pdf", "file": "forms.md" });
    assert_eq!(
        runtime.call("skill", file).await.text(),
        "A form.\nTwo lines."
    );
    let file = json!({ "name": "pdf", "file": "scripts/fill.py" });
    assert_eq!(runtime.call("skill", file).await.text(), "print('x')");
    let reply = runtime.call("skill", json!({ "name": "pfd\u{1b}" })).await;
    assert!(reply.is_error());
    assert!(
        reply.text().starts_with("unknown skill: pfd\\x1b"),
        "{}",
        reply.text()
    );
    assert!(reply.text().contains("deploy, pdf"), "{}", reply.text());
}

#[tokio::test]
async fn skills_are_objects_in_toolsets_whose_replies_are_objects() {
    let bed = Bed::new();
    bed.file("skills/pdf/SKILL.md", skill("pdf", "Use it."))
        .file("skills/pdf/a.md", "A");
    let (skills, _) = loaded(&bed).await;
    for (toolset, key) in [("deepagents", "status"), ("workspace", "success")] {
        let builder = Runtime::builder().dir(bed.path("")).toolset(toolset);
        let runtime = builder.build().unwrap();
        skills.add_to(&runtime).unwrap();
        let reply = runtime.call("skill", json!({ "name": "pdf" })).await;
        let reply: serde_json::Value = serde_json::from_str(&reply.text()).unwrap();
        assert!(reply.get(key).is_some(), "{reply}");
        assert_eq!(
            (&reply["content"], &reply["files"]),
            (&json!("Use it."), &json!(["a.md"]))
        );
        let reply = runtime.call("skill", json!({ "name": "no" })).await;
        assert!(reply.is_error());
        serde_json::from_str::<serde_json::Value>(&reply.text()).unwrap();
    }
}

#[tokio::test]
async fn a_folder_can_be_a_skill_itself_and_the_first_of_two_names_wins() {
    let bed = Bed::new();
    bed.file("one/SKILL.md", skill("same", "First."))
        .file("more/a/SKILL.md", skill("same", "Second."))
        .file("more/b/SKILL.md", skill("other", "Third."));
    let folders = [
        SkillFolder::named(bed.path("one")),
        SkillFolder::named(bed.path("more")),
        SkillFolder::usual(bed.path("not there")),
        SkillFolder::named(bed.path("missing")),
    ];
    let (skills, warnings) = Skills::load(&runtime(), &folders).await;
    assert_eq!(names(&skills), ["same", "other"]);
    assert_eq!(skills.list()[0].folder, bed.path("one"));
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].contains("more/a/SKILL.md: left out: the skill same is also in"),
        "{warnings:?}"
    );
    assert!(
        warnings[1].contains("missing: cannot load skills"),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn invalid_skills_are_left_out_and_the_others_load() {
    let bed = Bed::new();
    let outside = Bed::new();
    outside.file("evil/SKILL.md", skill("evil", "From outside."));
    bed.file("skills/good/SKILL.md", skill("good", "Fine."))
        .fifo("skills/fifo/SKILL.md")
        .sparse("skills/sparse/SKILL.md")
        .link("skills/link/SKILL.md", "/etc/passwd")
        .link("skills/folder", outside.path("evil"))
        .link("skills/loop", "loop")
        .link("skills/zero/SKILL.md", "/dev/zero")
        .file(
            "skills/binary/SKILL.md",
            b"---\nname: b\ndescription: x\n---\n\0\0\0\x01".as_slice(),
        )
        .file(
            "skills/name/SKILL.md",
            "---\nname: \"a\\u001b]0;x\\u0007\"\ndescription: x\n---\n",
        )
        .file("skills/none/SKILL.md", "no front matter")
        .file(
            "skills/evil\u{1b}[2J\nname/SKILL.md",
            "---\ndescription: x\n---\n",
        )
        .file(
            "skills/bomb/SKILL.md",
            format!(
                "---\na: &a [{0}]\nb: &b [{1}]\nc: [{2}]\ndescription: x\n---\n",
                "x, ".repeat(900),
                "*a, ".repeat(900),
                "*b, ".repeat(900)
            ),
        )
        .file(
            "skills/long/SKILL.md",
            format!("---\ndescription: {}\n---\n", "long ".repeat(3000)),
        );
    let begun = Instant::now();
    let (skills, warnings) = loaded(&bed).await;
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(names(&skills), ["good", "long"], "{warnings:#?}");
    assert!(skills.section().len() < 2000);
    for (file, why) in [
        ("fifo/SKILL.md", "FIFO"),
        ("sparse/SKILL.md", "1073741824 bytes"),
        ("link/SKILL.md", "leads out"),
        ("folder", "leads out"),
        ("loop", "left out"),
        ("zero/SKILL.md", "leads out"),
        ("binary/SKILL.md", "not a text file"),
        ("name/SKILL.md", "the name"),
        ("none/SKILL.md", "front matter"),
        ("bomb/SKILL.md", "front matter"),
    ] {
        let is_said = |one: &String| {
            one.contains(&format!("skills/{file}: "))
                && one.to_lowercase().contains(&why.to_lowercase())
        };
        assert!(warnings.iter().any(is_said), "{file}, {why}: {warnings:#?}");
    }
    assert!(
        warnings.iter().all(|one| !one.contains('\u{1b}')),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn files_outside_a_skill_cannot_be_read_through_it() {
    let bed = Bed::new();
    let outside = Bed::new();
    outside.file("secret", "top secret");
    bed.file("skills/one/SKILL.md", skill("one", "Body."))
        .file("skills/one/in.md", "inside")
        .link("skills/one/alias.md", "in.md")
        .link("skills/one/passwd", "/etc/passwd")
        .link("skills/one/up", "../two/SKILL.md")
        .link("skills/one/out", outside.path(""))
        .fifo("skills/one/fifo")
        .sparse("skills/one/sparse")
        .file("skills/two/SKILL.md", skill("two", "Not yours."))
        .file("secret", "top secret");
    let folders = [SkillFolder::within(bed.path(""), "skills")];
    let (skills, warnings) = Skills::load(&runtime(), &folders).await;
    assert_eq!(warnings, Vec::<String>::new());
    let runtime = Runtime::builder().dir(bed.path("")).build().unwrap();
    skills.add_to(&runtime).unwrap();
    let read = async |file: &str| {
        let arguments = json!({ "name": "one", "file": file });
        let reply = runtime.call("skill", arguments).await;
        (reply.text(), reply.is_error())
    };
    assert_eq!(read("alias.md").await, ("inside".to_owned(), false));
    let absolute = outside.path("secret");
    for file in [
        "../../secret",
        "../two/SKILL.md",
        "passwd",
        "up",
        "out/secret",
        "fifo",
        "sparse",
        "/etc/passwd",
        "/proc/self/environ",
        absolute.to_str().unwrap(),
        "missing",
        "..",
        ".",
        "a\0b",
    ] {
        let (text, is_error) = read(file).await;
        assert!(is_error, "{file:?}: {text}");
        assert!(
            !text.contains("top secret") && !text.contains("root:"),
            "{file:?}: {text}"
        );
        assert!(!text.contains("Not yours"), "{file:?}: {text}");
    }
    // A folder that was replaced with a link after loading does not help either.
    std::fs::rename(bed.path("skills/one"), bed.path("skills/was")).unwrap();
    bed.link("skills/one", outside.path(""));
    let (text, is_error) = read("secret").await;
    assert!(is_error, "{text}");
    std::fs::remove_file(bed.path("skills/one")).unwrap();
    bed.link("skills/one", bed.path(""));
    let (text, is_error) = read("secret").await;
    assert!(is_error, "{text}");
}

#[tokio::test]
async fn a_skill_folder_that_leads_out_of_the_project_is_left_out() {
    let bed = Bed::new();
    let outside = Bed::new();
    outside.file("skills/evil/SKILL.md", skill("evil", "From outside."));
    bed.link(".agents/skills", outside.path("skills"));
    let (skills, warnings) = Skills::load(
        &runtime(),
        &[SkillFolder::within(bed.path(""), ".agents/skills")],
    )
    .await;
    assert!(skills.is_empty());
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].contains(".agents/skills: left out: a link leads out"),
        "{warnings:?}"
    );
    let none = Skills::load(
        &runtime(),
        &[SkillFolder::within(bed.path(""), "nothing/skills")],
    )
    .await;
    assert!(none.0.is_empty() && none.1.is_empty());
}

#[tokio::test]
async fn long_skills_and_many_files_are_truncated() {
    let bed = Bed::new();
    bed.file(
        "skills/big/SKILL.md",
        skill("big", &"A line of it.\n".repeat(10_000)),
    )
    .file("skills/big/wide.md", "x".repeat(1 << 20));
    for n in 0..150 {
        bed.file(&format!("skills/big/many/{n:03}"), "x");
    }
    let (skills, _) = loaded(&bed).await;
    let runtime = Runtime::builder().dir(bed.path("")).build().unwrap();
    skills.add_to(&runtime).unwrap();
    let reply = runtime.call("skill", json!({ "name": "big" })).await.text();
    assert!(reply.len() < 60_000, "{}", reply.len());
    assert!(reply.contains("many/098") && !reply.contains("many/120"));
    assert!(
        reply.contains("of 10006 lines; the file is "),
        "{}",
        &reply[reply.len() - 300..]
    );
    let file = json!({ "name": "big", "file": "wide.md" });
    assert!(runtime.call("skill", file).await.text().len() < 60_000);
    for n in 0..250 {
        bed.file(
            &format!("lots/s{n:03}/SKILL.md"),
            skill(&format!("s{n}"), "x"),
        );
    }
    let (skills, warnings) = Skills::load(&runtime, &[SkillFolder::named(bed.path("lots"))]).await;
    assert_eq!(skills.list().len(), 200);
    assert!(warnings[0].contains("more than 200 skills"), "{warnings:?}");
}

#[tokio::test]
async fn a_rule_can_close_a_skill() {
    let bed = Bed::new();
    bed.file("secrets/SKILL.md", skill("hidden", "Text."))
        .link("skills/one/SKILL.md", "../../secrets/SKILL.md")
        .file("skills/two/SKILL.md", skill("two", "Text."));
    let mut draft = haft::RuleDraft::new(
        haft::Verdict::Deny,
        "*",
        haft::RuleLocation {
            file: "haft.yaml".to_owned(),
            line: 1,
        },
    );
    draft.path = Some("secrets/**".to_owned());
    let rules = vec![haft::Rule::new(draft).unwrap()];
    let runtime = Runtime::builder()
        .dir(bed.path(""))
        .policy(haft::Policy::new(vec![haft::RuleFile {
            owner: haft::RuleOwner::User,
            rules,
        }]))
        .build()
        .unwrap();
    let folders = [SkillFolder::within(bed.path(""), "skills")];
    let (skills, warnings) = Skills::load(&runtime, &folders).await;
    assert_eq!(names(&skills), ["two"]);
    assert!(
        warnings.len() == 1 && warnings[0].contains("a rule closes it to the model"),
        "{warnings:?}"
    );
}
