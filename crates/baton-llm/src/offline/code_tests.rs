//! Definitions and changes in sources of every language.

use super::*;

fn names(path: &str, source: &str) -> Vec<String> {
    outline(path, source).iter().map(|symbol| symbol.qualified(path)).collect()
}

fn compared(path: &str, before: &str, after: &str) -> Vec<String> {
    let word = |action| match action {
        FunctionAction::New => "new",
        FunctionAction::Modified => "modified",
        FunctionAction::Deleted => "deleted",
    };
    compare(path, before, after)
        .iter()
        .filter(|change| change.kind == Kind::Function)
        .map(|change| format!("{} {}", word(change.action), change.name))
        .collect()
}

#[test]
fn finds_definitions_and_changes_in_rust() {
    let before = "struct A;\nimpl A {\n    fn one(&self) {}\n    fn two(&self) {}\n}\nfn free() { 1 }\n";
    let after =
        "struct A;\nimpl A {\n    fn one(&self) { work() }\n    fn three(&self) {}\n}\nfn free() { 1 }\n";
    assert_eq!(names("src/a.rs", before), ["A", "A::one", "A::two", "free"]);
    assert_eq!(compared("src/a.rs", before, after), ["modified A::one", "new A::three", "deleted A::two"]);
    assert_eq!(
        names(
            "a.rs",
            "impl<T: Clone> Store<T> for Box<T> { fn get(&self) {} }\nmod m { pub const N: u8 = 1; trait T { fn f(); } }"
        ),
        ["Box::get", "m::N", "m::T", "T::f"]
    );
}

#[test]
fn finds_definitions_and_changes_in_python() {
    let before = "class A:\n    def one(self):\n        pass\n\n@cached\ndef free():\n    return 1\n";
    let after = "class A:\n    def one(self):\n        pass\n\n    async def two(self):\n        pass\n\n@cached\ndef free():\n    return 2\n";
    assert_eq!(names("a.py", before), ["A", "A.one", "free"]);
    assert_eq!(compared("a.py", before, after), ["new A.two", "modified free"]);
}

#[test]
fn finds_definitions_and_changes_in_typescript_and_javascript() {
    let before = "export class A {\n  one(): void {}\n  two = () => 1;\n}\nexport const free = async (x: number) => x;\ninterface B { n: number }\n";
    let after = before.replace("=> x", "=> x + 1").replace("  one(): void {}\n", "");
    assert_eq!(names("a.ts", before), ["A", "A.one", "A.two", "free", "B"]);
    assert_eq!(compared("a.ts", before, &after), ["modified free", "deleted A.one"]);
    assert_eq!(names("a.tsx", "export default function App() { return <p>{x}</p>; }\n"), ["App"]);
    let script = "function* walk() {}\nconst go = function () {};\nclass C { run() {} }\n";
    assert_eq!(names("a.mjs", script), ["walk", "go", "C", "C.run"]);
    assert_eq!(compared("a.js", "", script), ["new walk", "new go", "new C.run"]);
}

#[test]
fn finds_definitions_and_changes_in_go() {
    let before = "package a\n\ntype Store[T any] struct{ n int }\n\nfunc (s *Store[T]) Save() error { return nil }\n\nfunc helper() {}\n";
    let after = before.replace("return nil", "return err").replace("func helper() {}\n", "func other() {}\n");
    assert_eq!(names("a.go", before), ["Store", "Store.Save", "helper"]);
    assert_eq!(compared("a.go", before, &after), ["modified Store.Save", "new other", "deleted helper"]);
}

#[test]
fn finds_definitions_and_changes_in_java() {
    let before = "class A {\n  A() {}\n  int one() { return 1; }\n  interface B { void two(); }\n}\n";
    let after = before.replace("return 1", "return 2");
    assert_eq!(names("A.java", before), ["A", "A.A", "A.one", "A.B", "B.two"]);
    assert_eq!(compared("A.java", before, &after), ["modified A.one"]);
}

#[test]
fn complete_definitions_in_fragments_are_found() {
    let piece = "\treturn nil\n}\n\nfunc Added(t *testing.T) {\n\tt.Parallel()\n}\n";
    assert_eq!(names("a_test.go", piece), ["Added"]);
    assert_eq!(compared("a_test.go", "\treturn nil\n}\n", piece), ["new Added"]);
}

#[test]
fn type_changes_with_its_fields_but_not_its_methods() {
    let before = "class A:\n    x = 1\n    def f(self): pass\n";
    let methods = compare("a.py", before, &before.replace("pass", "return 1"));
    assert_eq!(methods.iter().map(|change| change.name.as_str()).collect::<Vec<_>>(), ["A.f"]);
    let fields = compare("a.py", before, &before.replace("x = 1", "x = 2"));
    assert_eq!(fields.iter().map(|change| change.name.as_str()).collect::<Vec<_>>(), ["A"]);
}

/// Creates a source that is too large to be parsed unmodified: many instances of `function`.
fn large(function: fn(usize, &str) -> String, changed: Option<usize>) -> String {
    (0..950).map(|index| function(index, if changed == Some(index) { "other()" } else { "work()" })).collect()
}

#[test]
fn large_sources_are_compared_too() {
    type Make = fn(usize, &str) -> String;
    let rust: Make = |i, body| {
        format!(
            "/// Says {i}.\npub fn f{i}(\n    input: &str,\n) -> u32 {{\n    if x {{\n        {body};\n    }}\n}}\n\n"
        )
    };
    let go: Make = |i, body| {
        format!("func (s *Store) f{i}(x int) error {{\n\tif x > 1 {{\n\t\t{body}\n\t}}\n\treturn nil\n}}\n\n")
    };
    let python: Make = |i, body| {
        format!("class C{i}:\n    def f{i}(self):\n        if x:\n            {body}\n        return 1\n\n")
    };
    let typescript: Make = |i, body| {
        format!("export class C{i} {{\n  f{i}(x: number): void {{\n    if (x) {{ {body}; }}\n  }}\n}}\n")
    };
    let java: Make = |i, body| {
        format!("class C{i} {{\n    int f{i}() {{\n        {body};\n        return 1;\n    }}\n}}\n")
    };
    for (path, make, owner) in [
        ("a.rs", rust, ""),
        ("a.go", go, "Store."),
        ("a.py", python, "C700."),
        ("a.ts", typescript, "C700."),
        ("A.java", java, "C700."),
    ] {
        let (before, after) = (large(make, None), large(make, Some(700)));
        assert!(before.len() > 64 * 1024);
        assert_eq!(compared(path, &before, &after), [format!("modified {owner}f700")], "{path}");
        let symbols = outline(path, &before);
        let symbol = symbols.iter().find(|symbol| symbol.name == "f700").unwrap();
        let line = before.lines().nth(symbol.line - 1).unwrap();
        assert!(line.contains("f700"), "{path}: {line}");
        assert_eq!(symbols.iter().filter(|symbol| symbol.kind == Kind::Function).count(), 950, "{path}");
    }
}

#[test]
fn unparsable_sources_yield_nothing() {
    assert!(outline("notes.md", "# fn main() {}").is_empty());
    assert!(outline("a.rs", &"x".repeat(MAX_SOURCE_BYTES + 1)).is_empty());
    assert!(outline("a.rs", "\0\u{1}\u{fffd}{{{{((((").is_empty());
    let deep = "{".repeat(100_000);
    outline("a.js", &deep);
    outline("a.py", &"(".repeat(100_000));
}
