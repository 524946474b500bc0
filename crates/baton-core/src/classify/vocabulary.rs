//! The words that keys and headings are made of, and what each says about a value.
//!
//! Owns the built-in word lists in the languages that contexts are written in. Does not own how a key is cut into words
//! (see `words`) or which of several words decides (see `key_rules`).

use std::collections::HashMap;
use std::sync::LazyLock;

use super::layer::Layer;

/// What a word says that a value is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Topic {
    Goal,
    Decision,
    Constraint,
    Requirement,
    Instruction,
    Answer,
    Plan,
    Reasoning,
    Progress,
    Finding,
    OpenPoint,
    Summary,
    Preference,
    Place,
    Analysis,
    Example,
    Note,
    Reference,
    History,
    Setting,
    Time,
    Duration,
    Identifier,
    Metric,
    Machine,
    Log,
    Debug,
    RawOutput,
}

impl Topic {
    /// The layer of what is about this.
    pub(super) const fn layer(self) -> Layer {
        match self {
            Self::Goal
            | Self::Decision
            | Self::Constraint
            | Self::Requirement
            | Self::Instruction
            | Self::Answer => Layer::Critical,
            Self::Plan
            | Self::Reasoning
            | Self::Progress
            | Self::Finding
            | Self::OpenPoint
            | Self::Summary
            | Self::Preference
            | Self::Place => Layer::Important,
            Self::Analysis | Self::Example | Self::Note | Self::Reference | Self::History | Self::Setting => {
                Layer::Useful
            }
            Self::Time
            | Self::Duration
            | Self::Identifier
            | Self::Metric
            | Self::Machine
            | Self::Log
            | Self::Debug
            | Self::RawOutput => Layer::Ephemeral,
        }
    }

    /// Tells whether a value about this, found inside something critical, is a part of it: the deadline of a
    /// constraint is a date, and its limits are numbers of seconds.
    pub(super) const fn is_detail(self) -> bool {
        matches!(self, Self::Time | Self::Duration | Self::Identifier | Self::Metric | Self::Machine)
    }

    /// The id of the rule, and what it says in an explanation.
    pub(super) const fn rule(self) -> (&'static str, &'static str) {
        match self {
            Self::Goal => ("key:goal", "a goal"),
            Self::Decision => ("key:decision", "a decision"),
            Self::Constraint => ("key:constraint", "a constraint"),
            Self::Requirement => ("key:requirement", "a requirement"),
            Self::Instruction => ("key:instruction", "an instruction"),
            Self::Answer => ("key:answer", "a final answer"),
            Self::Plan => ("key:plan", "a plan"),
            Self::Reasoning => ("key:reasoning", "reasoning"),
            Self::Progress => ("key:progress", "the state of the work"),
            Self::Finding => ("key:finding", "a finding"),
            Self::OpenPoint => ("key:open-point", "an open point"),
            Self::Summary => ("key:summary", "a summary"),
            Self::Preference => ("key:preference", "a preference"),
            Self::Place => ("key:place", "where the work happens"),
            Self::Analysis => ("key:analysis", "detailed analysis"),
            Self::Example => ("key:example", "an example"),
            Self::Note => ("key:note", "a note"),
            Self::Reference => ("key:reference", "a reference"),
            Self::History => ("key:history", "history"),
            Self::Setting => ("key:setting", "a setting"),
            Self::Time => ("key:time", "a time"),
            Self::Duration => ("key:duration", "a duration"),
            Self::Identifier => ("key:identifier", "an identifier"),
            Self::Metric => ("key:metric", "a measurement"),
            Self::Machine => ("key:machine", "a machine or process"),
            Self::Log => ("key:log", "a log"),
            Self::Debug => ("key:debug", "debug information"),
            Self::RawOutput => ("key:raw-output", "raw output"),
        }
    }
}

/// Words by topic; English words in the singular, unless the plural means something else.
const WORDS: &[(Topic, &str)] = &[
    (Topic::Goal, "goal objective mission purpose aim intent intention task want ask problem brief ambition vision"),
    (Topic::Goal, "ziel zweck aufgabe auftrag vorhaben objectif but mission objetivo propósito tarea"),
    (Topic::Goal, "цель цели задача задачи"),
    (Topic::Decision, "decision decided choice chosen selected approved agreed agreement resolution adr"),
    (Topic::Decision, "entscheidung entscheidungen beschluss beschlüsse décision décisions decisión decisiones"),
    (Topic::Decision, "решение решения"),
    (Topic::Constraint, "constraint must mustn limitation restriction invariant guardrail prohibited forbidden deadline"),
    (Topic::Constraint, "nongoal boundary never einschränkung einschränkungen randbedingung randbedingungen frist"),
    (Topic::Constraint, "contrainte contraintes restricción restricciones límites ограничение ограничения"),
    (Topic::Requirement, "requirement acceptance criteria criterion spec specification requires"),
    (Topic::Requirement, "anforderung anforderungen akzeptanzkriterium akzeptanzkriterien vorgabe vorgaben"),
    (Topic::Requirement, "exigence exigences critères requisito requisitos criterios требование требования"),
    (Topic::Instruction, "instruction request prompt guideline rule policy directive mandate anweisung anweisungen"),
    (Topic::Instruction, "regel regeln consigne consignes règles instrucciones reglas инструкция инструкции правила"),
    (Topic::Answer, "answer verdict deliverable antwort réponse respuesta ответ"),
    (Topic::Plan, "plan tasks step todo roadmap milestone strategy approach checklist outline agenda subtask"),
    (Topic::Plan, "subgoal backlog phase stage next assignment proposal design architecture fix workaround"),
    (Topic::Plan, "umsetzungsplan schritt schritte vorgehen aufgaben étape étapes plan stratégie tâches pasos paso"),
    (Topic::Plan, "estrategia tareas план планы шаг шаги этапы стратегия"),
    (Topic::Reasoning, "reasoning rationale thought thinking because why justification tradeoff consideration logic"),
    (Topic::Reasoning, "argument alternative begründung überlegung überlegungen raisonnement"),
    (Topic::Reasoning, "justification razonamiento motivos justificación рассуждение рассуждения обоснование"),
    (Topic::Progress, "progress status state current completed done finished achieved accomplished remaining pending"),
    (Topic::Progress, "fortschritt avancement progreso estado прогресс статус состояние"),
    (Topic::Finding, "finding insight conclusion hypothesis diagnosis cause discovery observation lesson learning"),
    (Topic::Finding, "evidence takeaway outcome recommendation erkenntnis erkenntnisse ergebnis ursache"),
    (Topic::Finding, "conclusions conclusión hallazgos вывод выводы причина"),
    (Topic::OpenPoint, "question blocker blocked risk issue assumption concern unknown uncertainty dependency error"),
    (Topic::OpenPoint, "warning frage fragen risiko risiken annahme annahmen questions risques riesgo riesgos"),
    (Topic::OpenPoint, "preguntas вопрос вопросы риск риски"),
    (Topic::Summary, "summary recap handoff tldr overview abstract zusammenfassung übergabe résumé resumen итог сводка"),
    (Topic::Preference, "preference style tone audience persona präferenz préférences preferencias"),
    (Topic::Place, "branch repo repository ticket worktree"),
    (Topic::Analysis, "analysis detail investigation comparison evaluation explanation breakdown analyse analysen"),
    (Topic::Analysis, "análisis detalles détails анализ подробности"),
    (Topic::Example, "example sample snippet demo template mock fixture illustration beispiel beispiele exemple"),
    (Topic::Example, "exemples ejemplo ejemplos пример примеры"),
    (Topic::Note, "note comment remark memo scratch scratchpad notebook feedback idea brainstorm hint background"),
    (Topic::Note, "notiz notizen hinweis hinweise bemerkung bemerkungen anmerkungen remarque remarques notas nota"),
    (Topic::Note, "observaciones заметка заметки примечание примечания"),
    (Topic::Reference, "reference source link url uri citation bibliography resource documentation doc docs file path"),
    (Topic::Reference, "paper glossary reading research knowledge related similar candidate dashboard attachment draft"),
    (Topic::Reference, "quelle quellen verweise références sources fuentes referencias источники ссылки"),
    (Topic::History, "history conversation message chat timeline changelog dialogue turn verlauf historique historial"),
    (Topic::History, "история"),
    (Topic::Setting, "setting config configuration environment env option parameter hyperparameter dataset version"),
    (Topic::Setting, "dependencies library einstellungen umgebung configuración настройки"),
    (Topic::Time, "timestamp time at date datetime when heartbeat seen updated created modified expires expiry sync ts"),
    (Topic::Time, "epoch clock zeitstempel zeit datum heure fecha hora timestamps marca метка время дата"),
    (Topic::Duration, "duration elapsed ms seconds sec secs millis minutes latency timeout interval ttl eta uptime took"),
    (Topic::Duration, "runtime dauer sekunden durée duración длительность"),
    (Topic::Identifier, "id uuid guid hash checksum sha digest etag fingerprint nonce revision ref correlation cursor"),
    (Topic::Metric, "metric count counter total usage token cost score stats statistics size bytes memory cpu rate retry"),
    (Topic::Metric, "temp temperature percent percentage iteration attempt telemetry benchmark seq rank confidence"),
    (Topic::Metric, "metrik metriken métriques métricas метрики"),
    (Topic::Machine, "host hostname pid ip port process thread worker runner pod container header headers cookie cookies"),
    (Topic::Log, "log logfile logs stdout stderr journal syslog protokoll registro registros журнал лог логи"),
    (Topic::Debug, "debug trace stacktrace traceback backtrace stack verbose profiling profile telemetry internal"),
    (Topic::RawOutput, "raw dump output response stdout payload blob transcript console screenshot image base64 cache"),
    (Topic::RawOutput, "buffer listing tree diff html xml ausgabe sortie salida вывод temp tmp"),
];

/// Several words in a row that say something else than the last of them.
const PHRASES: &[(Topic, &str)] = &[
    (Topic::Decision, "decision log|decision record|decision history|final decision|proposed decision"),
    (Topic::Requirement, "acceptance criteria|success criteria|definition of done|exit criteria|done when"),
    (Topic::Requirement, "success metric|success metrics|must have|must haves"),
    (Topic::Constraint, "non goal|non goals|out of scope|due date|do not|must not|time limit|token limit|hard limit"),
    (Topic::Constraint, "не должен"),
    (Topic::Instruction, "system message|user message|user input|user query|user prompt|user story|user stories"),
    (Topic::Goal, "problem statement|research question|research questions|user request|top priority|priority"),
    (Topic::Answer, "final answer|final result|final output|final response|final recommendation"),
    (Topic::Plan, "action item|action items|next action|next actions|next task|open task|open tasks|work plan|plan de"),
    (Topic::Plan, "pending task|pending tasks|remaining tasks|próximos pasos|prochaines étapes"),
    (Topic::Plan, "nächste schritte|следующие шаги|todo list|to do"),
    (Topic::Progress, "current task|current goal|current file|active task|completed tasks|completed steps"),
    (Topic::Reasoning, "chain of thought|trade off|trade offs|pros and cons|thought process|mental model"),
    (Topic::Finding, "root cause|key results|test result|test results"),
    (Topic::OpenPoint, "open issue|open issues|last error|current error|offene fragen|open points|known issues"),
    (Topic::Reference, "relevant files|files touched|see also|search results|search result"),
    (Topic::Time, "last updated|last modified|last seen|last sync"),
    (Topic::Identifier, "cache key|session key|idempotency key|commit sha|run number"),
    (Topic::Metric, "token usage|retry count|rate limit"),
    (Topic::Log, "error log|access log|log file|log lines|log output|command history|commands run|shell history"),
    (Topic::RawOutput, "tool output|tool call|tool calls|tool result|tool results|tool response|api response"),
    (Topic::RawOutput, "git status|directory listing|file tree|dir listing|file list"),
    (Topic::Debug, "stack dump|stack trace|thread dump|core dump|heap dump|debug info"),
];

/// Words that decide wherever they stand in a key: a raw plan is raw, an example response is an example and a chosen
/// option is a choice.
const MODIFIERS: &[&str] = &[
    "raw", "debug", "example", "sample", "dump", "traceback", "stacktrace", "beispiel", "ejemplo", "decided", "chosen",
    "selected", "approved", "agreed",
];

/// Words that say nothing at the end of a key, so that the word before them decides.
const FILLERS: &str = "list text data info information item items value values content body description statement \
    summary section block made used entry entries record records string json md markdown yaml array set map name title \
    and of the for to in by with from v a an is are was";

/// Parts of keys in languages that are written without blanks.
const UNSPACED: &[(Topic, &str)] = &[
    (Topic::Requirement, "受け入れ基準 受入基準 要件 要求 需求 验收标准 标准"),
    (Topic::Decision, "決定 决定 决策 決策"),
    (Topic::Constraint, "制約 制限 约束 限制 禁止 期限"),
    (Topic::Goal, "目的 目標 目标 任务 課題 依頼"),
    (Topic::Instruction, "指示 指令 规则 規則 ルール"),
    (Topic::Plan, "計画 计划 手順 步骤 ステップ 方針 方案 次の 下一步 待办"),
    (Topic::Reasoning, "考察 理由 推理 推論 思考 根拠 原因"),
    (Topic::Progress, "進捗 进度 状態 状态 現状"),
    (Topic::OpenPoint, "質問 问题 課題点 リスク 风险 未解決"),
    (Topic::Summary, "概要 まとめ 要約 总结 摘要"),
    (Topic::Analysis, "分析 詳細 详情"),
    (Topic::Example, "例 サンプル 示例 样例"),
    (Topic::Note, "メモ 備考 备注 笔记 注意"),
    (Topic::Reference, "参考 資料 链接 出典"),
    (Topic::Log, "ログ 日志 記録"),
    (Topic::Time, "日時 時刻 时间 時間 タイムスタンプ"),
    (Topic::RawOutput, "出力 输出"),
];

/// The lists above, ready to be asked; built when the first context is classified, not when the process starts.
static INDEX: LazyLock<Index> = LazyLock::new(Index::build);

struct Index {
    words: HashMap<&'static str, Topic>,
    phrases: HashMap<&'static str, Topic>,
    fillers: Vec<&'static str>,
}

impl Index {
    fn build() -> Self {
        let split = |table: &'static [(Topic, &'static str)], separator: char| {
            table.iter().rev().flat_map(move |(topic, list)| list.split(separator).map(move |text| (text, *topic)))
        };
        Self {
            words: split(WORDS, ' ').collect(),
            phrases: split(PHRASES, '|').collect(),
            fillers: FILLERS.split_whitespace().collect(),
        }
    }
}

/// Finds what a word is about.
pub(super) fn topic_of_word(word: &str) -> Option<Topic> {
    INDEX.words.get(word).copied()
}

/// Finds what several words, joined by blanks, are about together.
pub(super) fn topic_of_phrase(phrase: &str) -> Option<Topic> {
    INDEX.phrases.get(phrase).copied()
}

/// Finds the first part of an unspaced word that is about something, and that part.
pub(super) fn topic_within(word: &str) -> Option<(Topic, &'static str)> {
    UNSPACED.iter().find_map(|(topic, parts)| {
        parts.split(' ').find(|part| word.contains(part)).map(|part| (*topic, part))
    })
}

/// Tells whether a word decides wherever it stands in a key.
pub(super) fn is_modifier(word: &str) -> bool {
    MODIFIERS.contains(&word)
}

/// Tells whether a word says nothing at the end of a key.
pub(super) fn is_filler(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit()) || INDEX.fillers.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::words::split;

    #[test]
    fn every_word_and_phrase_is_reachable() {
        for (_, list) in WORDS {
            for word in list.split(' ') {
                assert_eq!(split(word).concat(), word, "a key never has this word");
            }
        }
        for (_, list) in PHRASES {
            for phrase in list.split('|') {
                assert_eq!(split(phrase).join(" "), phrase);
            }
        }
    }
}
