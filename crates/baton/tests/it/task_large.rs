//! Files larger than memory in a checkout.

use std::fs::File;

use baton_testkit::binary::Home;

use crate::checkout::{Checkout, TASK};

/// Memory of the process in KiB, for `ulimit -v`: less than a tenth of the file.
const MEMORY_KIB: u64 = 400_000;

#[test]
#[ignore = "run by scripts/test --full"]
fn large_file_of_5_gib_is_captured_and_verified_as_a_stream() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton")).with_ulimit(&format!("-v {MEMORY_KIB}"));
    let checkout = Checkout::unborn_in(home);
    checkout.commit();
    checkout.task(&["init-context", TASK]);
    checkout.update("implementer", "in_progress");
    let file = File::create(checkout.path("src/large.rs")).unwrap();
    file.set_len(5 << 30).unwrap();
    let snapshot = checkout.snapshot("implementer");
    assert_eq!(snapshot["files_changed"][0]["path"], "src/large.rs", "{snapshot}");
    assert_eq!(snapshot["file_metadata"][0]["size"], 5_u64 << 30, "{snapshot}");
    checkout.update("implementer", "done");
    let verify = ["verify-worktree", TASK, "--expected-agent", "implementer", "--full"];
    checkout.task(&verify);
    file.set_len((5 << 30) + 1).unwrap();
    let error = checkout.refused(5, &verify);
    assert!(error["message"].as_str().unwrap().contains("src/large.rs"), "{error}");
}
