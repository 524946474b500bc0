//! The programming languages that can be parsed, and their syntax nodes that define names.

use tree_sitter::{Language as Grammar, Node};

/// A language with a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Rust,
    Python,
    TypeScript,
    Tsx,
    JavaScript,
    Go,
    Java,
}

/// Kind of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A function or a method.
    Function,
    /// A class, struct, interface, enum, trait or named type.
    Type,
    /// A constant or a variable outside functions.
    Constant,
    /// A scope without a definition of its own: an `impl` block, a namespace.
    Scope,
}

impl Language {
    /// Returns the language of a file by its extension.
    pub(super) fn of_path(path: &str) -> Option<Self> {
        let ending = path.rsplit(['/', '\\']).next()?.rsplit_once('.')?.1;
        Some(match ending {
            "rs" => Self::Rust,
            "py" | "pyi" => Self::Python,
            "ts" | "mts" | "cts" => Self::TypeScript,
            "tsx" => Self::Tsx,
            "js" | "jsx" | "mjs" | "cjs" => Self::JavaScript,
            "go" => Self::Go,
            "java" => Self::Java,
            _ => return None,
        })
    }

    pub(super) fn grammar(self) -> Grammar {
        match self {
            Self::Rust => tree_sitter_rust::LANGUAGE,
            Self::Python => tree_sitter_python::LANGUAGE,
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX,
            Self::JavaScript => tree_sitter_javascript::LANGUAGE,
            Self::Go => tree_sitter_go::LANGUAGE,
            Self::Java => tree_sitter_java::LANGUAGE,
        }
        .into()
    }

    /// Returns the separator between a type and its method in a qualified name.
    pub(super) fn separator(self) -> &'static str {
        match self {
            Self::Rust => "::",
            _ => ".",
        }
    }

    /// Returns the kind of a definition and the node with its name.
    pub(super) fn definition(self, node: Node<'_>) -> Option<(Kind, Node<'_>)> {
        let named = |kind| node.child_by_field_name("name").map(|name| (kind, name));
        match self {
            Self::Rust => match node.kind() {
                "function_item" | "function_signature_item" | "macro_definition" => named(Kind::Function),
                "struct_item" | "enum_item" | "union_item" | "trait_item" | "type_item" => named(Kind::Type),
                "const_item" | "static_item" => named(Kind::Constant),
                "mod_item" => node.child_by_field_name("body").and(named(Kind::Scope)),
                "impl_item" => node.child_by_field_name("type").map(|name| (Kind::Scope, name)),
                _ => None,
            },
            Self::Python => match node.kind() {
                "function_definition" => named(Kind::Function),
                "class_definition" => named(Kind::Type),
                _ => None,
            },
            Self::Go => match node.kind() {
                "function_declaration" | "method_declaration" => named(Kind::Function),
                "type_spec" | "type_alias" => named(Kind::Type),
                "const_spec" | "var_spec" => named(Kind::Constant),
                _ => None,
            },
            Self::Java => match node.kind() {
                "method_declaration" | "constructor_declaration" | "compact_constructor_declaration" => {
                    named(Kind::Function)
                }
                "class_declaration"
                | "interface_declaration"
                | "enum_declaration"
                | "record_declaration"
                | "annotation_type_declaration" => named(Kind::Type),
                _ => None,
            },
            Self::TypeScript | Self::Tsx | Self::JavaScript => match node.kind() {
                "function_declaration"
                | "generator_function_declaration"
                | "function_signature"
                | "method_definition"
                | "abstract_method_signature" => named(Kind::Function),
                "class_declaration"
                | "abstract_class_declaration"
                | "interface_declaration"
                | "type_alias_declaration"
                | "enum_declaration" => named(Kind::Type),
                "internal_module" | "module" => named(Kind::Scope),
                "variable_declarator" => holds_function(node).then(|| named(Kind::Function)).flatten(),
                "field_definition" | "public_field_definition" if holds_function(node) => node
                    .child_by_field_name("name")
                    .or_else(|| node.child_by_field_name("property"))
                    .map(|name| (Kind::Function, name)),
                _ => None,
            },
        }
    }

    /// Returns the receiver type of a Go method: `Store` for `func (s *Store) Save()`.
    pub(super) fn receiver<'a>(self, node: Node<'_>, source: &'a str) -> Option<&'a str> {
        if self != Self::Go || node.kind() != "method_declaration" {
            return None;
        }
        let text = source.get(node.child_by_field_name("receiver")?.byte_range())?;
        let text = text.trim_matches(['(', ')', ' ']).split('[').next()?;
        text.rsplit([' ', '*']).next().filter(|name| !name.is_empty())
    }
}

/// Returns true if a variable or field holds a function: `const save = async () => {…}`.
fn holds_function(node: Node<'_>) -> bool {
    node.child_by_field_name("value").is_some_and(|value| {
        matches!(value.kind(), "arrow_function" | "function_expression" | "generator_function" | "function")
    })
}
