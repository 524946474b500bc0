//! Builds tree objects from paths.

use crate::object::{ObjectFormat, ObjectId};
use crate::path::split_name;
use crate::status::StatusSide;

/// A path of a tree to be built.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TreeInput<'a> {
    pub(crate) path: &'a [u8],
    /// The file; `None` if it exists in `HEAD` but was deleted.
    pub(crate) file: Option<StatusSide>,
    /// Whether `HEAD` has the same file at this path.
    pub(crate) in_head: bool,
}

#[derive(Debug)]
pub(crate) struct BuiltTree {
    pub(crate) id: ObjectId,
    /// Whether the tree differs from `HEAD`.
    pub(crate) differs: bool,
    /// Tree objects that `HEAD` may not have, including the root.
    pub(crate) objects: Vec<(ObjectId, Vec<u8>)>,
}

/// A folder whose entries are incomplete.
struct Open {
    /// Length of the folder's path.
    length: usize,
    content: Vec<u8>,
    /// Whether the folder differs from `HEAD`.
    differs: bool,
}

/// Builds a tree. The inputs must be sorted by path, which is also the order of entries in trees.
pub(crate) fn build<'a>(format: ObjectFormat, inputs: impl Iterator<Item = TreeInput<'a>>) -> BuiltTree {
    let mut builder = Builder {
        format,
        current_folder: Vec::new(),
        open: vec![Open { length: 0, content: Vec::new(), differs: false }],
        objects: Vec::new(),
    };
    for input in inputs {
        let (folder, name) = split_name(input.path);
        builder.enter(folder);
        let Some(folder) = builder.open.last_mut() else { continue };
        folder.differs |= !input.in_head;
        if let Some(StatusSide { mode, id }) = input.file {
            push_entry(&mut folder.content, mode.digits(), name, id);
        }
    }
    builder.enter(b"");
    let (content, differs) = builder.open.pop().map(|root| (root.content, root.differs)).unwrap_or_default();
    let id = format.id_of("tree", &content);
    let mut objects = builder.objects;
    objects.push((id, content));
    BuiltTree { id, differs, objects }
}

fn push_entry(content: &mut Vec<u8>, mode: &str, name: &[u8], id: ObjectId) {
    content.extend_from_slice(mode.as_bytes());
    content.push(b' ');
    content.extend_from_slice(name);
    content.push(0);
    content.extend_from_slice(id.as_bytes());
}

struct Builder {
    format: ObjectFormat,
    /// Current folder, ending with `/` unless it is the root.
    current_folder: Vec<u8>,
    open: Vec<Open>,
    objects: Vec<(ObjectId, Vec<u8>)>,
}

impl Builder {
    fn enter(&mut self, folder: &[u8]) {
        while !folder.starts_with(&self.current_folder) {
            self.close();
        }
        while self.current_folder.len() < folder.len() {
            let rest = &folder[self.current_folder.len()..];
            let end = rest.iter().position(|byte| *byte == b'/').map_or(rest.len(), |slash| slash + 1);
            self.current_folder.extend_from_slice(&rest[..end]);
            self.open.push(Open { length: self.current_folder.len(), content: Vec::new(), differs: false });
        }
    }

    /// Completes the innermost folder and adds it to its parent.
    fn close(&mut self) {
        let Some(done) = self.open.pop() else { return };
        let Some(around) = self.open.last_mut() else { return };
        around.differs |= done.differs;
        if !done.content.is_empty() {
            let id = self.format.id_of("tree", &done.content);
            let name = &self.current_folder[around.length..done.length - 1];
            push_entry(&mut around.content, "40000", name, id);
            if done.differs {
                self.objects.push((id, done.content));
            }
        }
        self.current_folder.truncate(around.length);
    }
}
