//! Ids of messages, and the state of a session, which version 1 does not have.
//!
//! Ids are counted, so that a message that is replayed has the id that it had before.

use crate::schema::Waiting;

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    Agent,
    Thought,
}

/// State of a session, as far as it changes while a prompt is worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    Running,
    RequiresAction,
    Idle,
}

/// Progress of a session, as the client knows it.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Prompts so far, without slash commands of haft.
    prompts: u64,
    commands: u64,
    /// Id of the prompt that is being answered.
    prompt: String,
    /// Messages since the prompt, and the author of the one that is being written.
    messages: u64,
    speaker: Option<Speaker>,
    is_running: bool,
    questions: u64,
}

impl Progress {
    /// Creates the state of a session with this many prompts in its history.
    pub(super) fn after(prompts: u64) -> Self {
        Self {
            prompts,
            ..Self::default()
        }
    }

    fn start(&mut self, id: String) -> String {
        (self.messages, self.speaker) = (0, None);
        self.prompt.clone_from(&id);
        id
    }

    /// Starts a prompt and returns its id.
    pub(super) fn accept(&mut self, is_recorded: bool) -> String {
        self.is_running = true;
        match is_recorded {
            true => self.user(true),
            false => {
                self.commands += 1;
                self.start(format!("command-{}", self.commands))
            }
        }
    }

    /// Returns the id of a message of the user.
    pub(super) fn user(&mut self, is_first: bool) -> String {
        if !is_first {
            return self.prompt.clone();
        }
        self.prompts += 1;
        self.start(format!("prompt-{}", self.prompts))
    }

    /// Returns the id of the message that a chunk belongs to.
    pub(super) fn chunk(&mut self, speaker: Speaker) -> String {
        if self.speaker != Some(speaker) {
            self.messages += 1;
            self.speaker = Some(speaker);
        }
        format!("{}.{}", self.prompt, self.messages)
    }

    /// Ends the message that is being written.
    pub(super) fn interrupt(&mut self) {
        self.speaker = None;
    }

    /// Ends the prompt.
    pub(super) fn end(&mut self) {
        self.is_running = false;
        self.questions = 0;
        self.speaker = None;
    }

    /// Counts open questions. Returns the state if it has changed.
    pub(super) fn wait(&mut self, change: Waiting) -> Option<Activity> {
        let before = self.questions;
        self.questions = match change {
            Waiting::Begins => before.saturating_add(1),
            Waiting::Ends => before.saturating_sub(1),
        };
        match (before, self.questions) {
            (0, 1) => Some(Activity::RequiresAction),
            (1, 0) if self.is_running => Some(Activity::Running),
            (1, 0) => Some(Activity::Idle),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_same_ids_when_they_are_replayed() {
        let mut live = Progress::after(1);
        assert_eq!(live.accept(true), "prompt-2");
        let mut replayed = Progress::after(0);
        replayed.user(true);
        assert_eq!(replayed.user(true), "prompt-2");
        assert_eq!(replayed.user(false), "prompt-2");
        for progress in [&mut live, &mut replayed] {
            assert_eq!(progress.chunk(Speaker::Thought), "prompt-2.1");
            assert_eq!(progress.chunk(Speaker::Agent), "prompt-2.2");
            assert_eq!(progress.chunk(Speaker::Agent), "prompt-2.2");
            progress.interrupt();
            assert_eq!(progress.chunk(Speaker::Agent), "prompt-2.3");
        }
        // A slash command is not part of the conversation.
        assert_eq!(live.accept(false), "command-1");
        assert_eq!(live.chunk(Speaker::Agent), "command-1.1");
        assert_eq!(live.accept(true), "prompt-3");
    }

    #[test]
    fn the_state_depends_on_the_open_questions() {
        let mut progress = Progress::after(0);
        progress.accept(true);
        let wait = |progress: &mut Progress, change| progress.wait(change);
        assert_eq!(
            wait(&mut progress, Waiting::Begins),
            Some(Activity::RequiresAction)
        );
        assert_eq!(wait(&mut progress, Waiting::Begins), None);
        assert_eq!(wait(&mut progress, Waiting::Ends), None);
        assert_eq!(wait(&mut progress, Waiting::Ends), Some(Activity::Running));
        wait(&mut progress, Waiting::Begins);
        progress.end();
        // The question of a cancelled prompt.
        assert_eq!(wait(&mut progress, Waiting::Ends), None);
    }
}
