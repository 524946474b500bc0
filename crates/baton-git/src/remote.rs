//! Name of a repository: `owner/name` from its remote, or `local/<folder>`.

use std::path::Path;

use baton_core::Repo;

use crate::configuration::Configuration;

/// Names a repository after `origin`, else the remote of the branch, else the only remote, else its folder. A linked
/// worktree has the name of the main checkout.
pub(crate) fn repository_name(
    configuration: &Configuration,
    branch: Option<&str>,
    common_dir: &Path,
    root: &Path,
) -> Option<Repo> {
    let folder = match common_dir.file_name() {
        Some(name) if name == ".git" => common_dir.parent().unwrap_or(root),
        _ => root,
    };
    let url = |remote: &str| configuration.first(&format!("remote.{remote}.url"));
    let of_branch = || url(configuration.get(&format!("branch.{}.remote", branch?))?);
    let only = || {
        let remotes = configuration.subsections("remote");
        (remotes.len() == 1).then(|| remotes.first().copied()).flatten().and_then(url)
    };
    let remote = url("origin").or_else(of_branch).or_else(only);
    remote.and_then(name_in_url).or_else(|| format!("local/{}", folder_name(folder)).parse().ok())
}

/// Returns the folder name with invalid characters replaced.
fn folder_name(folder: &Path) -> String {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let sound = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-');
    let name: String =
        name.chars().map(|letter| if sound(letter) { letter } else { '-' }).take(128).collect();
    if name.chars().all(|letter| letter == '.') { "repository".into() } else { name }
}

/// Returns the last two components of the path of a remote URL; `None` for a local path, which has no owner.
pub fn name_in_url(url: &str) -> Option<Repo> {
    let path = match url.split_once("://") {
        Some(("file", _)) => return None,
        Some((_, rest)) => rest.split_once('/')?.1,
        // git@host:owner/name, unless a slash comes before the colon: then it is a path.
        None => url.split_once(':').filter(|(host, _)| !host.contains('/'))?.1,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default().trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let mut parts = path.rsplit('/').filter(|part| !part.is_empty());
    let (name, owner) = (parts.next()?, parts.next()?);
    format!("{}/{name}", owner.trim_start_matches(['~', '.', '_', '-'])).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_addresses() {
        for (url, name) in [
            ("https://github.com/venturecrane/crane-console.git", Some("venturecrane/crane-console")),
            ("https://user:secret@example.com:8443/a/b", Some("a/b")),
            ("git@github.com:a/b.git", Some("a/b")),
            ("ssh://git@example.com:2222/~a/b.git/", Some("a/b")),
            ("https://gitlab.com/group/sub/name.git", Some("sub/name")),
            ("host:a/b", Some("a/b")),
            ("/srv/git/name.git", None),
            ("./x:y/z", None),
            ("file:///srv/git/a/b.git", None),
            ("https://example.com/only", None),
            ("https://example.com/a%20b/c", None),
        ] {
            assert_eq!(name_in_url(url).as_ref().map(Repo::as_str), name, "{url}");
        }
    }

    #[test]
    fn repository_without_remote_is_named_after_its_folder() {
        let none = Configuration::default();
        for (folder, name) in
            [("/home/a/my project", "local/my-project"), ("/", "local/repository"), ("/x/.dot", "local/.dot")]
        {
            let folder = Path::new(folder);
            assert_eq!(repository_name(&none, None, &folder.join(".git"), folder).unwrap().as_str(), name);
        }
        let two = Configuration::read(b"remote.fork.url\nh:f/r\0remote.up.url\nh:u/r\0branch.x.remote\nup\0");
        let name = |branch| repository_name(&two, Some(branch), Path::new("/r/.git"), Path::new("/r"));
        assert_eq!(name("x").unwrap().as_str(), "u/r");
        assert_eq!(name("y").unwrap().as_str(), "local/r");
    }
}
