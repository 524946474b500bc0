//! Checks the reader of QA logs against a folder of real logs named `NAME.PASS.log` and `NAME.FAIL.log`.
//!
//! `BATON_QA_LOGS` is the path of the folder; without it nothing is checked. A log of a failed command, alone or
//! concatenated with any other log in either order, must never be read as `passed`.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench prints its table and fails loudly")]

use std::fs;

use baton_qa::{QaStatus, read_log};

fn main() {
    let Ok(folder) = std::env::var("BATON_QA_LOGS") else {
        println!("BATON_QA_LOGS is not set: no QA logs to check");
        return;
    };
    let mut logs: Vec<(String, bool, String)> = fs::read_dir(folder)
        .expect("the folder of logs")
        .filter_map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_name()?.to_str()?.to_owned();
            let passed = name.contains(".PASS.");
            let text = String::from_utf8_lossy(&fs::read(&path).expect("a log")).into_owned();
            (passed || name.contains(".FAIL.")).then_some((name, passed, text))
        })
        .collect();
    logs.sort();
    let mut wrong = 0;
    for (name, passed, text) in &logs {
        let report = read_log(text);
        let right = report.status == if *passed { QaStatus::Passed } else { QaStatus::Failed };
        if !right {
            println!("{name}: {} {}", report.status, report.reason.unwrap_or_default());
        }
        wrong += usize::from(!passed && report.status == QaStatus::Passed);
    }
    let mut pairs = 0;
    for (one, first_passed, first) in &logs {
        for (other, second_passed, second) in &logs {
            if *first_passed && *second_passed {
                continue;
            }
            for separator in ["", "\n"] {
                pairs += 1;
                if read_log(&format!("{first}{separator}{second}")).status == QaStatus::Passed {
                    println!("false pass: {one} + {other}");
                    wrong += 1;
                }
            }
        }
    }
    println!("{} logs, {pairs} pairs with a failure, {wrong} false passes", logs.len());
    assert_eq!(wrong, 0, "false passes");
}
