//! Output on terminals of several widths.

use std::process::{Command, Stdio};

use baton_testkit::binary::Home;

/// Runs a command on a terminal with this many columns and returns what it prints, without carriage returns.
pub(crate) fn on_a_terminal(
    home: &Home,
    columns: usize,
    arguments: &str,
    environment: &[(&str, &str)],
) -> String {
    let shell = format!("stty cols {columns}; {} {arguments}", env!("CARGO_BIN_EXE_baton"));
    let mut command = Command::new("script");
    for (name, value) in home.command().get_envs() {
        command.envs(value.map(|value| (name, value)));
    }
    command.current_dir(home.working_folder());
    command.env("TERM", "xterm").env_remove("NO_COLOR").envs(environment.iter().copied());
    let output = command.args(["-qec", &shell, "/dev/null"]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap().replace('\r', "")
}
