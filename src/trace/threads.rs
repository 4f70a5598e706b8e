//! Threads, and their names over time.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::base::{Distinct, IdVec, define_id};

define_id! {
    /// A row of [`Trace::threads`](super::Trace::threads).
    pub TraceThreadId
}

/// A thread that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) pid: i32,
    pub(super) tid: i32,
    /// The time at which it was seen that nobody has its number.
    pub(super) gone: Option<u64>,
}

/// A thread under one name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TraceThread {
    pub pid: i32,
    pub tid: i32,
    /// The command name at the time.
    pub comm: Arc<str>,
    /// What the process was started for, if it is a compiler or a linker and the recorder looked.
    pub job: Option<Arc<str>>,
}

/// The threads as they are at one moment.
#[derive(Debug, Default)]
pub(super) struct Threads {
    pub(super) table: Distinct<TraceThreadId, TraceThread>,
    names: FxHashMap<i32, Arc<str>>,
    /// What each process was started for.
    jobs: FxHashMap<i32, Arc<str>>,
    /// The row that a thread's samples go to now.
    current: FxHashMap<(i32, i32), TraceThreadId>,
    /// The one that was asked for last: as a rule it is the next one, too.
    last: Option<((i32, i32), TraceThreadId)>,
}

impl Threads {
    pub(super) fn name(&mut self, pid: i32, tid: i32, name: &str) {
        self.names.insert(tid, name.into());
        self.current.remove(&(pid, tid));
        self.last = None;
    }

    /// A process has started a program, for what the recorder has seen it start it for.
    pub(super) fn exec(&mut self, pid: i32, job: Option<&str>) {
        match job {
            Some(job) => self.jobs.insert(pid, job.into()),
            None => self.jobs.remove(&pid),
        };
        self.current.remove(&(pid, pid));
        self.last = None;
    }

    /// A thread was made by another, which may be of another process, and has its name.
    pub(super) fn fork(&mut self, (pid, tid): (i32, i32), (parent_pid, parent): (i32, i32)) {
        if let Some(name) = self.names.get(&parent).cloned() {
            self.names.insert(tid, name);
        }
        if pid != parent_pid {
            match self.jobs.get(&parent_pid).cloned() {
                Some(job) => self.jobs.insert(pid, job),
                None => self.jobs.remove(&pid),
            };
        }
        self.current.remove(&(pid, tid));
        self.last = None;
    }

    /// A thread has ended, and its number may be another's.
    pub(super) fn forget(&mut self, pid: i32, tid: i32) {
        self.names.remove(&tid);
        if pid == tid {
            self.jobs.remove(&pid);
        }
        self.current.remove(&(pid, tid));
        self.last = None;
    }

    /// Empties the table of all rows but those that are `wanted`. Returns their new ids.
    pub(super) fn keep(
        &mut self,
        wanted: &IdVec<TraceThreadId, bool>,
    ) -> IdVec<TraceThreadId, Option<TraceThreadId>> {
        let old = std::mem::take(&mut self.table).into_rows();
        self.current.clear();
        self.last = None;
        let rows = old.enumerate();
        let ids = rows.map(|(id, row)| wanted[id].then(|| self.table.id_of(row.clone())));
        ids.collect::<Vec<_>>().into()
    }

    pub(super) fn of(&mut self, pid: i32, tid: i32) -> TraceThreadId {
        if let Some((_, id)) = self.last.filter(|&(last, _)| last == (pid, tid)) {
            return id;
        }
        let id = self.find(pid, tid);
        self.last = Some(((pid, tid), id));
        id
    }

    /// The thread of these numbers, if it has occurred with its present name.
    pub(super) fn known(&self, pid: i32, tid: i32) -> Option<TraceThreadId> {
        let last = self.last.filter(|&(last, _)| last == (pid, tid));
        let known = last.map(|(_, id)| id);
        known.or_else(|| self.current.get(&(pid, tid)).copied())
    }

    fn find(&mut self, pid: i32, tid: i32) -> TraceThreadId {
        if let Some(&id) = self.current.get(&(pid, tid)) {
            return id;
        }
        let name = self.names.get(&tid).or_else(|| self.names.get(&pid));
        let comm = match (name, tid) {
            (Some(name), _) => name.clone(),
            (None, 0) => "swapper".into(),
            (None, _) => format!(":{tid}").into(),
        };
        let job = self.jobs.get(&pid).cloned();
        let row = TraceThread {
            pid,
            tid,
            comm,
            job,
        };
        let id = self.table.id_of(row);
        self.current.insert((pid, tid), id);
        id
    }
}
