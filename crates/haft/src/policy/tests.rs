//! Decisions of the policy, as tables.

mod lines;
mod ordinary;
mod spellings;
mod zap;

use super::*;
use std::path::{Path, PathBuf};

/// Parses a rule in short form: `allow bash ls -l`, `deny write @docs/**`, `ask fetch
/// %*.example.com`, `deny * :execute`.
pub(super) fn rule(text: &str) -> Rule {
    let mut words = text.split(' ');
    let verdict = match words.next() {
        Some("allow") => Verdict::Allow,
        Some("review") => Verdict::Review,
        Some("ask") => Verdict::Ask,
        Some("deny") => Verdict::Deny,
        other => panic!("{other:?}"),
    };
    let place = RuleLocation {
        file: "rules".to_owned(),
        line: 1,
    };
    let mut draft = RuleDraft::new(verdict, words.next().unwrap(), place);
    let mut command = Vec::new();
    for word in words {
        if let Some(glob) = word.strip_prefix('@') {
            draft.path = Some(glob.to_owned());
        } else if let Some(host) = word.strip_prefix('%') {
            draft.host = Some(host.to_owned());
        } else if let Some(effect) = word.strip_prefix(':') {
            draft.effect = Some(Effect::by_name(effect).unwrap());
        } else {
            command.push(word.to_owned());
        }
    }
    draft.command = (!command.is_empty()).then_some(command);
    Rule::new(draft).unwrap()
}

pub(super) fn file(owner: RuleOwner, rules: &[&str]) -> RuleFile {
    RuleFile {
        owner,
        rules: rules.iter().map(|text| rule(text)).collect(),
    }
}

fn policy(rules: &[&str]) -> Policy {
    Policy::new(vec![file(RuleOwner::User, rules)])
}

fn act<'a>(tool: &'a str, effect: Effect, resources: &'a [Resource]) -> PolicyInput<'a> {
    PolicyInput {
        tool,
        effect,
        resources,
        work_dir: Path::new("/w"),
        bases: &[],
        names: &[],
    }
}

fn bash(policy: &Policy, line: &str) -> Verdict {
    let resources = [Resource::Command(line.to_owned())];
    policy
        .judge(&act("bash", Effect::Execute, &resources))
        .verdict
}

/// Checks the verdict for each line under the rules.
fn lines(rules: &[&str], table: &[(&str, Verdict)]) {
    let policy = policy(rules);
    for (line, expected) in table {
        assert_eq!(bash(&policy, line), *expected, "{line:?} under {rules:?}");
    }
}

use Verdict::{Allow, Ask, Deny, Review};

#[test]
fn a_review_is_stricter_than_allowing_and_more_lenient_than_asking() {
    assert!(Allow < Review && Review < Ask && Ask < Deny);
    lines(
        &[
            "allow bash ls",
            "ask bash git push",
            "deny bash dd",
            "review bash",
        ],
        &[
            ("ls", Allow),
            ("rm -r x", Review),
            ("ls; rm -r x", Review),
            ("rm x; git push", Ask),
            ("rm x; dd if=a", Deny),
        ],
    );
    // A rule that reviews a command also finds it behind a path.
    lines(&["review bash rm"], &[("/bin/rm x", Review), ("ls", Allow)]);
    // A project can only make it stricter.
    let both = |own: &str, theirs: &str| {
        let files = vec![
            file(RuleOwner::User, &[own]),
            file(RuleOwner::Project, &[theirs]),
        ];
        bash(&Policy::new(files), "make")
    };
    assert_eq!(both("review bash", "allow bash"), Review);
    assert_eq!(both("allow bash", "review bash"), Review);
    assert_eq!(both("review bash", "ask bash"), Ask);
}

#[test]
fn every_command_of_a_line_is_judged() {
    // A-01
    lines(
        &["allow bash ls", "deny bash rm"],
        &[
            ("ls", Allow),
            ("ls -la src", Allow),
            ("ls; rm x", Deny),
            ("ls && rm x", Deny),
            ("ls || rm x", Deny),
            ("ls | rm x", Deny),
            ("ls\nrm x", Deny),
            ("ls | xargs rm", Deny),
            ("ls & rm x", Deny),
            ("ls\r\nrm x", Deny),
            ("ls & cat x", Allow),
            ("ls\r\ncat x", Ask),
            ("ls;rm x", Deny),
            ("/bin/rm x", Deny),
            ("./rm x", Deny),
            ("'rm' x", Deny),
            ("r\\m x", Deny),
            ("\"rm\" x", Deny),
            ("ls && \\\nrm x", Deny),
            ("rm -rf $HOME", Deny),
            ("rm x; echo $HOME", Deny),
            ("sudo cat x", Allow),
            ("ls $(cat x)", Ask),
        ],
    );
}

#[test]
fn denied_commands_are_found_wherever_they_can_be_analysed() {
    for line in [
        "git log $(rm x)",
        "git log `rm x`",
        "git log <(rm x)",
        "echo ${x:-$(rm x)}",
        "(rm x)",
        "{ rm x; }",
        "if rm x; then ls; fi",
        "if ls; then rm x; fi",
        "for x in a; do rm x; done",
        "! rm x",
        "A=b rm x",
        "ls 2>/dev/null; rm x",
        "2>/dev/null rm x",
        "2>&1 rm x",
        "ls > a && rm x",
        "ls &> a; rm x",
        "ls $HOME; rm x",
        "ls \"$HOME\"; rm x",
        "ls *; rm x",
        "ls ~; rm x",
        "ls # words\nrm x",
        "ls | while read x; do rm $x; done",
        "sudo -n rm x",
        "env A=b rm x",
        "timeout 5 /bin/rm x",
        "nohup nice -n 5 rm x",
        "xargs -0 rm",
        "sh -c 'rm x'",
        "bash -ec \"cd a && rm x\"",
        "eval 'rm x'",
        "eval rm x",
        "find . -exec rm x +",
        "exec rm x",
    ] {
        lines(&["deny bash rm"], &[(line, Deny)]);
    }
    // An argument or a text is not a command.
    for line in [
        "echo $(date) rm",
        "echo `date` rm",
        "echo rm > rm",
        "echo $x rm",
        "echo 'rm x' $x",
        "cat > x <<E\nrm x\nE",
        "echo x # rm x",
        "sudo ls rm",
    ] {
        lines(&["deny bash rm"], &[(line, Allow)]);
    }
}

#[test]
fn an_allowed_command_covers_no_substitution() {
    // A-02
    let table: Vec<(&str, Verdict)> = [
        "git log $(rm x)",
        "git log `rm x`",
        "git log <(rm x)",
        "git log >(rm x)",
        "git log ${x:-$(rm x)}",
        "git log --format=$(rm x)",
        "git log \"$(rm x)\"",
        "git log \"`rm x`\"",
        "git log $(sh -c 'rm x')",
        "git log $(git log $(rm x))",
        "git log > /file",
        "git log \u{1}",
        "git log '",
        "git log \\",
        "git log &&",
        "git log;; rm x",
    ]
    .into_iter()
    .map(|line| (line, Ask))
    .collect();
    lines(&["allow bash git log"], &table);
    for line in [
        "git log '$(rm x)' \"a b\" HEAD~1",
        "git log > file",
        "git log 2>&1",
        "git log $'a'",
        "(git log)",
        "{ git log; }",
        "git log *",
        "git log ~",
        "git log a{b,c}",
        "git log # more",
        "git log <<E\nE",
        "! git log",
        "time git log",
        "for x in a; do git log; done",
        "[[ a ]] && git log",
        "git log $(git log)",
    ] {
        lines(&["allow bash git log", "ask bash"], &[(line, Allow)]);
    }
    for line in [
        "if true; then git log; fi",
        "function f() { rm x; }",
        "git log; f() { rm x; }",
        "git log |& rm x",
    ] {
        lines(&["allow bash git log", "ask bash"], &[(line, Ask)]);
    }
}

#[test]
fn an_assignment_that_may_change_what_runs_needs_approval() {
    // A-04
    let table: Vec<(&str, Verdict)> = [
        "LD_PRELOAD=./e.so ls",
        "PATH=.:$PATH ls",
        "GIT_SSH_COMMAND=x git fetch",
        "BASH_ENV=x ls",
        "IFS=x ls",
        "PATH+=:x ls",
        "export PATH=x; ls",
        "read PATH < x; ls",
        "printf -v PATH x; ls",
        "declare -x LD_LIBRARY_PATH=x; ls",
        "for PATH in a; do ls; done",
        ": ${PATH:=x}; ls",
        "unset PATH; ls",
        "env PATH=x ls",
        "let PATH=1; ls",
        "HOME=x git fetch",
        "ls; IFS=x",
    ]
    .into_iter()
    .map(|line| (line, Ask))
    .collect();
    lines(&["allow bash ls", "allow bash git fetch"], &table);
    lines(&["ask bash git push"], &table);
    for line in ["A=x ls", "A+=x ls", "A=x", "export A=x; ls", "env A=x ls"] {
        lines(&["allow bash ls", "ask bash git push"], &[(line, Allow)]);
    }
}

#[test]
fn rules_compare_words_not_characters() {
    // A-09
    lines(
        &["allow bash git log", "ask bash"],
        &[
            ("git log", Allow),
            ("git  log\t-1", Allow),
            ("git logout", Ask),
            ("git log--x", Ask),
            ("git\u{a0}log", Ask),
            ("git log\u{a0}x", Ask),
            ("git log\u{200b}", Ask),
            ("gitlog", Ask),
            ("git", Ask),
            ("/usr/bin/git log", Ask),
            ("./git log", Ask),
            ("GIT log", Ask),
        ],
    );
}

#[test]
fn a_rule_that_allows_a_wrapper_does_not_allow_what_it_runs() {
    for line in [
        "env ls",
        "sh -c ls",
        "sudo ls",
        "nohup ls",
        "timeout 5 ls",
        "eval ls",
        "command ls",
        "busybox ls",
        "find . -delete",
        "find . -exec ls ;",
        "printf '-va[$(touch x)]' y",
        "alias ls=rm",
        "trap ls EXIT",
        "timeout 5 env ls",
        "/lib64/ld-linux-x86-64.so.2 /bin/ls",
    ] {
        let first = line.split(' ').next().unwrap();
        let line = line.replace(';', "\\;");
        let allowed = format!("allow bash {first}");
        assert_eq!(bash(&policy(&[&allowed]), &line), Ask, "{line}");
        assert_eq!(bash(&policy(&[&allowed, "ask bash"]), &line), Ask, "{line}");
    }
    lines(
        &["allow bash env", "allow bash ls"],
        &[("env ls", Allow), ("env rm", Ask)],
    );
    lines(&["allow bash find"], &[("find . -name x", Allow)]);
    let words = |words: &[&str]| {
        let argv = words.iter().map(|word| (*word).to_owned()).collect();
        policy(&["allow bash ls", "allow bash env", "deny bash rm"])
            .judge(&act("bash", Effect::Execute, &[Resource::Program(argv)]))
            .verdict
    };
    assert_eq!(words(&["ls", "$(rm x)", "; rm x"]), Allow);
    assert_eq!(words(&["env", "ls"]), Allow);
    assert_eq!(words(&["env", "cat"]), Ask);
    assert_eq!(words(&["rm", "x"]), Deny);
    assert_eq!(words(&[]), Allow);
}

#[test]
fn rules_about_the_tool_apply_to_every_line() {
    lines(&[], &[("ls $(x)", Allow)]);
    lines(&["allow bash"], &[("ls $(x)", Allow)]);
    lines(&["deny bash"], &[("ls $(x)", Deny), ("ls", Deny)]);
    lines(&["allow bash ls", "deny bash"], &[("ls $(x)", Deny)]);
    lines(&["allow other ls"], &[("ls $(x)", Allow)]);
    lines(&["allow * ls"], &[("ls $(x)", Ask), ("$C", Ask)]);
    lines(
        &["allow bash", "ask bash rm"],
        &[("$C", Allow), ("PATH=x ls", Allow)],
    );
    lines(
        &["ask bash rm", "allow bash"],
        &[("$C", Ask), ("PATH=x ls", Ask)],
    );
    lines(
        &["review bash rm"],
        &[("$C", Review), ("rm $X", Review), ("ls $X", Allow)],
    );
    lines(
        &["review bash rm -r"],
        &[("rm $X", Review), ("rm x $X", Allow)],
    );
    let two = Policy::new(vec![
        file(RuleOwner::Project, &["ask bash rm"]),
        file(RuleOwner::User, &["allow bash"]),
    ]);
    assert_eq!(bash(&two, "ls $(x)"), Allow);
    assert_eq!(bash(&two, "$C $(x)"), Ask, "a rule of any file counts");
}

#[test]
fn the_first_rule_of_a_file_and_the_strictest_file_decide() {
    lines(
        &["deny bash rm -rf", "allow bash rm", "ask bash"],
        &[
            ("rm x", Allow),
            ("rm -rf x", Deny),
            ("ls", Ask),
            ("rm x && ls", Ask),
        ],
    );
    let verdict = |project: &[&str], person: &[&str], line| {
        let policy = Policy::new(vec![
            file(RuleOwner::Project, project),
            file(RuleOwner::User, person),
        ]);
        bash(&policy, line)
    };
    assert_eq!(verdict(&["allow bash"], &["deny bash rm"], "rm x"), Deny);
    assert_eq!(verdict(&["deny bash rm"], &["allow bash"], "rm x"), Deny);
    assert_eq!(verdict(&["allow bash"], &["ask bash"], "ls"), Ask);
    assert_eq!(verdict(&["ask bash"], &["allow bash ls"], "ls"), Ask);
    assert_eq!(verdict(&["deny other"], &[], "ls"), Allow);
}

#[test]
fn a_path_is_checked_under_all_of_its_names() {
    let policy = policy(&[
        "deny * @secret/**",
        "allow write @docs/**",
        "ask write",
        "deny * @/etc/**",
    ]);
    let verdict = |given: &str, real: &str| {
        let resources = [Resource::Path(given.to_owned(), Access::Write)];
        let names = [
            (given.to_owned(), Path::new("/w").join(given)),
            (given.to_owned(), PathBuf::from(real)),
        ];
        let mut act = act("write", Effect::Write, &resources);
        act.names = &names;
        policy.judge(&act).verdict
    };
    assert_eq!(verdict("docs/a.md", "/w/docs/a.md"), Allow);
    assert_eq!(verdict("docs/link", "/w/src/a.rs"), Ask);
    assert_eq!(verdict("docs/link", "/w/secret/a"), Deny);
    assert_eq!(verdict("secret/link", "/w/docs/a"), Deny);
    assert_eq!(verdict("docs/../secret/a", "/w/secret/a"), Deny);
    assert_eq!(
        verdict("secret", "/w/secret"),
        Deny,
        "with all that is in it"
    );
    assert_eq!(verdict("./docs/./a", "/w/docs/a"), Allow);
    assert_eq!(verdict("/w/docs/a", "/w/docs/a"), Allow);
    assert_eq!(verdict("secrets/a", "/w/secrets/a"), Ask);
    let resources = [Resource::Path("/etc/passwd".to_owned(), Access::Read)];
    let read = policy.judge(&act("read", Effect::Read, &resources));
    assert_eq!(read.verdict, Deny);
    assert_eq!(
        read.parts[0].by.to_string(),
        "rules:1 { deny: \"*\", path: \"/etc/**\" }"
    );
}

#[test]
fn a_host_matches_exactly_or_below_a_name() {
    let policy = policy(&[
        "allow fetch %*.example.com",
        "allow fetch %example.org",
        "ask fetch",
    ]);
    for (host, expected) in [
        ("a.example.com", Allow),
        ("A.B.EXAMPLE.com.", Allow),
        ("example.com", Ask),
        ("evilexample.com", Ask),
        ("a.example.com.evil.org", Ask),
        ("example.org", Allow),
        ("www.example.org", Ask),
    ] {
        let resources = [Resource::Host(host.to_owned())];
        let judgement = policy.judge(&act("fetch", Effect::Network, &resources));
        assert_eq!(judgement.verdict, expected, "{host}");
    }
}

#[test]
fn no_spelling_of_an_address_evades_a_rule() {
    let policy = policy(&["deny fetch %1.2.3.4", "deny fetch %[::1]", "allow fetch"]);
    for (host, expected) in [
        ("1.2.3.4", Deny),
        ("[::ffff:1.2.3.4]", Deny),
        ("[::ffff:102:304]", Deny),
        ("[64:ff9b::102:304]", Deny),
        ("[::1]", Deny),
        ("[0:0::1]", Deny),
        ("[::ffff:1.2.3.5]", Allow),
    ] {
        let resources = [Resource::Host(host.to_owned())];
        let judgement = policy.judge(&act("fetch", Effect::Network, &resources));
        assert_eq!(judgement.verdict, expected, "{host}");
    }
}

#[test]
fn an_effect_applies_to_the_tool_and_to_its_resources() {
    let verdict = |rules: &[&str], effect, resource: &Resource| {
        policy(rules)
            .judge(&act("any", effect, std::slice::from_ref(resource)))
            .verdict
    };
    let host = Resource::Host("h".to_owned());
    let line = Resource::Command("ls".to_owned());
    assert_eq!(verdict(&["deny * :network"], Effect::Network, &host), Deny);
    assert_eq!(verdict(&["deny * :network"], Effect::Read, &host), Deny);
    assert_eq!(verdict(&["deny * :network"], Effect::Execute, &line), Allow);
    assert_eq!(verdict(&["ask * :execute"], Effect::Pure, &line), Ask);
    let loose = ["allow * :read", "ask *"];
    let path = |access| Resource::Path("a".to_owned(), access);
    assert_eq!(verdict(&loose, Effect::Read, &path(Access::Read)), Allow);
    assert_eq!(verdict(&loose, Effect::Write, &path(Access::Read)), Ask);
    assert_eq!(
        policy(&["ask * :pure"])
            .judge(&act("any", Effect::Pure, &[]))
            .verdict,
        Ask,
        "a call that touches nothing is judged as such"
    );
}

#[test]
fn ask_first_overrides_rules_that_allow() {
    let mut policy = policy(&["allow bash ls"]);
    policy.ask_first("commands run on another machine", Effect::Execute);
    let resources = [Resource::Command("ls".to_owned())];
    let judgement = policy.judge(&act("bash", Effect::Execute, &resources));
    assert_eq!(judgement.verdict, Ask);
    assert_eq!(
        judgement.parts[0].by,
        DecidedBy::Session("commands run on another machine".to_owned())
    );
    assert_eq!(policy.judge(&act("read", Effect::Read, &[])).verdict, Allow);
}

#[test]
fn a_rule_is_suggested_only_if_it_helps() {
    let place = RuleLocation {
        file: "x".to_owned(),
        line: 0,
    };
    let suggested = |files: Vec<RuleFile>, resource: Resource| {
        let resources = [resource];
        let act = act("bash", Effect::Execute, &resources);
        Policy::new(files)
            .suggest(&act, &place)
            .map(|rule| rule.to_string())
    };
    let line = |line: &str| Resource::Command(line.to_owned());
    let mine = |rules: &[&str]| vec![file(RuleOwner::User, rules)];
    let ask = || mine(&["ask bash"]);
    let rule = |text: &str| Some(text.to_owned());
    assert_eq!(
        suggested(ask(), line("git push origin")),
        rule("{ allow: bash, command: git push }")
    );
    assert_eq!(
        suggested(ask(), line("ls -la")),
        rule("{ allow: bash, command: ls }")
    );
    assert_eq!(
        suggested(ask(), line("'my tool' x; 'my tool' x")),
        rule("{ allow: bash, command: [my tool, x] }")
    );
    assert_eq!(
        suggested(ask(), line("ls; cat x")),
        rule("{ allow: bash, command: ls }, { allow: bash, command: cat x }")
    );
    assert_eq!(
        suggested(ask(), line("ls $(x)")),
        rule("{ allow: bash, command: x }, { allow: bash, command: ls }")
    );
    assert_eq!(
        suggested(ask(), line("sudo ls")),
        rule("{ allow: bash, command: sudo ls }, { allow: bash, command: ls }")
    );
    assert_eq!(suggested(ask(), line("$C ls")), None);
    assert_eq!(suggested(mine(&["deny bash ls"]), line("ls")), None);
    assert_eq!(suggested(mine(&["deny bash rm"]), line("ls")), None);
    assert_eq!(
        suggested(vec![file(RuleOwner::Project, &["ask bash"])], line("ls")),
        None,
        "what the project asks the person's rule does not answer"
    );
    assert_eq!(
        suggested(ask(), Resource::Host("h.org".to_owned())),
        rule("{ allow: bash, host: h.org }")
    );
    assert_eq!(
        suggested(ask(), Resource::Path("a/b c.txt".to_owned(), Access::Read)),
        rule("{ allow: bash, path: a/b c.txt }")
    );
    assert_eq!(
        suggested(ask(), Resource::Path("a/*".to_owned(), Access::Read)),
        None
    );
}

#[test]
fn examples_are_checked() {
    let checked = |edit: &dyn Fn(&mut RuleDraft)| {
        let place = RuleLocation {
            file: "haft.yaml".to_owned(),
            line: 7,
        };
        let mut draft = RuleDraft::new(Verdict::Allow, "bash", place);
        edit(&mut draft);
        Rule::new(draft).map(|_| ()).map_err(|bad| bad.to_string())
    };
    let words = |text: &str| Some(text.split(' ').map(str::to_owned).collect());
    let texts = |text: &str| vec![text.to_owned()];
    let command = |matching: &'static str, not: &'static str| {
        checked(&|draft| {
            draft.command = words("git log");
            draft.matching = texts(matching);
            draft.not_matching = texts(not);
        })
    };
    assert_eq!(command("git log -1", "git logout"), Ok(()));
    assert_eq!(command("git log && git log -1", "git log; rm x"), Ok(()));
    assert_eq!(
        command("git logs", "x"),
        Err("haft.yaml:7: the match example \"git logs\" does not match".to_owned())
    );
    assert_eq!(command("git log $x 2>&1 | git log", "git log $(x)"), Ok(()));
    assert_eq!(
        command("PATH=x git log", "x"),
        Err("haft.yaml:7: the match example \"PATH=x git log\" does not match (not covered: the variable PATH may decide which program runs)".to_owned())
    );
    assert_eq!(
        command("git log", "git log x"),
        Err("haft.yaml:7: the no_match example \"git log x\" matches".to_owned())
    );
    let path = |glob: &'static str, matching: &'static str| {
        checked(&|draft| {
            draft.path = Some(glob.to_owned());
            draft.matching = texts(matching);
        })
    };
    assert_eq!(path("docs/**", "docs/a/b.md"), Ok(()));
    assert_eq!(path("**", "a"), Ok(()));
    assert_eq!(path("/etc/*", "/etc/passwd"), Ok(()));
    for (glob, example) in [
        ("docs/**", "../docs/a"),
        ("docs/*", "/docs/a"),
        ("/etc/*", "etc/a"),
    ] {
        assert!(path(glob, example).is_err(), "{glob} {example}");
    }
    for glob in ["docs/", "../x", "~/x", "[", ""] {
        assert!(path(glob, "docs/a").is_err(), "{glob}");
    }
    assert!(
        checked(&|draft| draft.matching = texts("x"))
            .unwrap_err()
            .contains("examples need a rule with command, path or host")
    );
    assert!(checked(&|draft| draft.host = Some("*".to_owned())).is_err());
    assert!(checked(&|draft| draft.command = Some(Vec::new())).is_err());
    assert!(
        checked(&|draft| {
            draft.command = words("ls");
            draft.path = Some("x".to_owned());
        })
        .is_err()
    );
}
