//! The hand-over of finished steps from workers to the one consumer, as a plain state machine.
//!
//! Nothing here blocks, locks or knows of threads: each method is one critical section of
//! [`Ring`](super::ring::Ring) and says whom to wake. That makes the rules checkable by walking through every
//! interleaving of small cases, which the tests of this module do.
//!
//! # The life of a step
//!
//! 1. **claim**: a worker takes the next step, in order, while fewer than `slots` steps are outstanding
//!    (claimed and not yet taken).
//! 2. **grant**: the worker knows the bytes of its step and asks for them. Grants go in step order; one is given
//!    when the bytes fit under the cap, or when no others are held. So the step that the consumer waits for
//!    never waits for bytes that only a later step could free: the cap cannot deadlock, and a batch larger than
//!    the cap passes alone.
//! 3. **deliver**: the worker puts its result into the step's slot. This is never refused.
//! 4. **take**: the consumer takes the step at the head; its bytes are free again.
//!
//! `seek` starts a new generation. Finished steps of the old one are handed back to be dropped; a worker that
//! still computes one keeps its bytes until it delivers, and the result is thrown away then.

/// Who has to be woken after a critical section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wake {
    /// The consumer, which waits for the step at the head.
    pub(super) consumer: bool,
    /// Workers that wait for a step to claim.
    pub(super) claimers: Who,
    /// All workers that wait for bytes: only the one whose turn it is goes on.
    pub(super) granters: bool,
}

impl Wake {
    const ALL: Self = Self { consumer: true, claimers: Who::All, granters: true };
}

/// How many of a group to wake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Who {
    #[default]
    Nobody,
    One,
    All,
}

/// A claimed step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ticket {
    generation: u64,
    step: u64,
    bytes: u64,
}

impl Ticket {
    pub(super) fn step(&self) -> u64 {
        self.step
    }
}

/// The answer to a claim.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Claim {
    Step(Ticket),
    Wait,
    Closed,
}

/// The answer to a request for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grant {
    Granted,
    Wait,
    /// A seek made the step meaningless: drop the ticket and claim another.
    Stale,
    Closed,
}

/// The answer to the consumer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Take<T> {
    Step(T),
    Wait,
    /// Every step of a finite course was taken.
    End,
    /// The step will never come: its worker died.
    Lost,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Slot<T> {
    Free,
    Ready { value: T, bytes: u64 },
}

/// The state of the hand-over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Protocol<T> {
    slots: Box<[Slot<T>]>,
    byte_limit: u64,
    generation: u64,
    /// The step that the consumer takes next.
    head: u64,
    /// The step that is claimed next: `head <= granted <= claimed <= head + slots`.
    claimed: u64,
    /// The step that gets its bytes next.
    granted: u64,
    /// Steps from here on do not exist.
    end: u64,
    /// Bytes granted and not yet free again, of this generation and of older ones.
    bytes: u64,
    /// Filled slots.
    ready: usize,
    closed: bool,
    lost: bool,
    /// Workers asleep in a claim, and for bytes: nobody is woken when nobody sleeps.
    pub(super) idle_claimers: usize,
    pub(super) idle_granters: usize,
    /// Whether the consumer sleeps.
    pub(super) idle_consumer: bool,
}

impl<T> Protocol<T> {
    /// A hand-over of the steps `start..end` through `slots` places (at least one) and about `byte_limit` bytes.
    pub(super) fn new(slots: usize, byte_limit: u64, start: u64, end: u64) -> Self {
        let mut protocol = Self {
            slots: (0..slots.max(1)).map(|_| Slot::Free).collect(),
            byte_limit,
            generation: 0,
            head: start,
            claimed: start,
            granted: start,
            end,
            bytes: 0,
            ready: 0,
            closed: false,
            lost: false,
            idle_claimers: 0,
            idle_granters: 0,
            idle_consumer: false,
        };
        protocol.aim(start, end);
        protocol
    }

    fn aim(&mut self, start: u64, end: u64) {
        self.end = end.max(start);
        (self.head, self.claimed, self.granted) = (start, start, start);
    }

    fn slot(&mut self, step: u64) -> &mut Slot<T> {
        let slots = self.slots.len() as u64;
        #[expect(clippy::cast_possible_truncation, reason = "a remainder of the number of slots is an index")]
        let index = (step % slots) as usize;
        &mut self.slots[index]
    }

    fn can_claim(&self) -> bool {
        self.claimed < self.end && self.claimed - self.head < self.slots.len() as u64
    }

    /// Takes the next step for a worker.
    pub(super) fn claim(&mut self) -> (Claim, Wake) {
        if self.closed {
            return (Claim::Closed, Wake::default());
        }
        if !self.can_claim() {
            return (Claim::Wait, Wake::default());
        }
        let ticket = Ticket { generation: self.generation, step: self.claimed, bytes: 0 };
        self.claimed += 1;
        // The consumer wakes one worker at most; each that finds more room wakes the next.
        let more = self.can_claim() && self.idle_claimers > 0;
        let wake = Wake { claimers: if more { Who::One } else { Who::Nobody }, ..Wake::default() };
        (Claim::Step(ticket), wake)
    }

    /// Asks for the bytes of a claimed step.
    pub(super) fn grant(&mut self, ticket: &mut Ticket, bytes: u64) -> (Grant, Wake) {
        if self.closed {
            return (Grant::Closed, Wake::default());
        }
        if ticket.generation != self.generation {
            return (Grant::Stale, Wake::default());
        }
        let fits = self.bytes == 0
            || self.bytes.checked_add(bytes).is_some_and(|together| together <= self.byte_limit);
        if ticket.step != self.granted || !fits {
            return (Grant::Wait, Wake::default());
        }
        ticket.bytes = bytes;
        self.bytes = self.bytes.saturating_add(bytes);
        self.granted += 1;
        (Grant::Granted, Wake { granters: self.idle_granters > 0, ..Wake::default() })
    }

    /// Puts the result of a granted step into its slot. Gives it back when a seek made it meaningless.
    pub(super) fn deliver(&mut self, ticket: Ticket, value: T) -> (Option<T>, Wake) {
        if self.closed || ticket.generation != self.generation {
            self.bytes = self.bytes.saturating_sub(ticket.bytes);
            return (Some(value), Wake { granters: self.idle_granters > 0, ..Wake::default() });
        }
        *self.slot(ticket.step) = Slot::Ready { value, bytes: ticket.bytes };
        self.ready += 1;
        let consumer = ticket.step == self.head && self.idle_consumer;
        (None, Wake { consumer, ..Wake::default() })
    }

    /// Whether a take would not wait.
    pub(super) fn head_is_ready(&self) -> bool {
        let slots = self.slots.len() as u64;
        #[expect(clippy::cast_possible_truncation, reason = "a remainder of the number of slots is an index")]
        let slot = self.slots.get((self.head % slots) as usize);
        self.head == self.end || self.lost || matches!(slot, Some(Slot::Ready { .. }))
    }

    /// Takes the step at the head.
    pub(super) fn take(&mut self) -> (Take<T>, Wake) {
        if self.head == self.end {
            return (Take::End, Wake::default());
        }
        let head = self.head;
        match std::mem::replace(self.slot(head), Slot::Free) {
            Slot::Ready { value, bytes } => {
                self.head += 1;
                self.ready -= 1;
                self.bytes = self.bytes.saturating_sub(bytes);
                // Waking a thread costs microseconds: a full queue is drained to half before workers are woken.
                let wanted = self.idle_claimers > 0 && self.ready <= self.slots.len() / 2 && self.can_claim();
                let claimers = if wanted { Who::One } else { Who::Nobody };
                (Take::Step(value), Wake { claimers, granters: self.idle_granters > 0, consumer: false })
            }
            Slot::Free if self.lost || self.closed => (Take::Lost, Wake::default()),
            Slot::Free => (Take::Wait, Wake::default()),
        }
    }

    /// Goes on at `start`, up to `end`. Returns the finished steps that nobody wants any more.
    pub(super) fn seek(&mut self, start: u64, end: u64) -> (Vec<T>, Wake) {
        let mut discarded = Vec::with_capacity(self.ready);
        for slot in &mut self.slots {
            if let Slot::Ready { value, bytes } = std::mem::replace(slot, Slot::Free) {
                self.bytes = self.bytes.saturating_sub(bytes);
                discarded.push(value);
            }
        }
        self.ready = 0;
        self.generation += 1;
        self.aim(start, end);
        (discarded, Wake { consumer: false, ..Wake::ALL })
    }

    /// Ends everything: workers stop at their next call.
    pub(super) fn close(&mut self) -> Wake {
        self.closed = true;
        Wake::ALL
    }

    /// Notes that a worker died with its step: the consumer must not wait for what is missing.
    pub(super) fn lose(&mut self) -> Wake {
        self.lost = true;
        Wake { consumer: true, ..Wake::default() }
    }

    /// Finished steps that wait for the consumer.
    pub(super) fn ready(&self) -> usize {
        self.ready
    }

    /// Bytes granted and not yet free again.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
#[path = "protocol_model.rs"]
mod model;
