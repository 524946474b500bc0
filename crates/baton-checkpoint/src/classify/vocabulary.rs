//! Words of keys and headings, and their topics.
//!
//! Owns the built-in word lists in several languages. Does not own how a key is split into words (see `words`) or which
//! of several words decides (see `key_rules`).

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::table::{by_first_word, rows};
use super::topic::Topic;

/// Words by topic, see [`rows`]. English words are singular, unless the plural has another topic.
const WORDS: &str = "
    goal: goal objective mission purpose aim intent intention task want ask problem brief ambition vision \
        ziel zweck aufgabe auftrag vorhaben objectif but objetivo propósito tarea цель цели задача задачи
    decision: decision decided choice chosen selected approved agreed agreement resolution adr entscheidung \
        entscheidungen beschluss beschlüsse décision décisions decisión decisiones решение решения
    constraint: constraint must mustn limitation restriction invariant guardrail prohibited forbidden \
        deadline nongoal boundary never einschränkung einschränkungen randbedingung randbedingungen frist \
        contrainte contraintes restricción restricciones límites ограничение ограничения
    requirement: requirement acceptance criteria criterion spec specification requires anforderung \
        anforderungen akzeptanzkriterium akzeptanzkriterien vorgabe vorgaben exigence exigences critères \
        requisito requisitos criterios требование требования
    instruction: instruction request prompt guideline rule policy directive mandate anweisung anweisungen \
        regel regeln consigne consignes règles instrucciones reglas инструкция инструкции правила
    answer: answer verdict deliverable antwort réponse respuesta ответ
    plan: plan tasks step todo roadmap milestone strategy approach checklist outline agenda subtask subgoal \
        backlog phase stage next assignment proposal design architecture fix workaround umsetzungsplan \
        schritt schritte vorgehen aufgaben étape étapes stratégie tâches pasos paso estrategia tareas план \
        планы шаг шаги этапы стратегия
    reasoning: reasoning rationale thought thinking because why justification tradeoff consideration logic \
        argument alternative begründung überlegung überlegungen raisonnement razonamiento motivos \
        justificación рассуждение рассуждения обоснование
    progress: progress status state current completed done finished achieved accomplished remaining pending \
        fortschritt avancement progreso estado прогресс статус состояние
    finding: finding insight conclusion hypothesis diagnosis cause discovery observation lesson learning \
        evidence takeaway outcome recommendation erkenntnis erkenntnisse ergebnis ursache conclusions \
        conclusión hallazgos вывод выводы причина
    open-point: question blocker blocked risk issue assumption concern unknown uncertainty dependency error \
        warning frage fragen risiko risiken annahme annahmen questions risques riesgo riesgos preguntas \
        вопрос вопросы риск риски
    summary: summary recap handoff tldr overview abstract zusammenfassung übergabe résumé resumen итог \
        сводка
    preference: preference style tone audience persona präferenz préférences preferencias
    place: branch repo repository ticket worktree
    analysis: analysis detail investigation comparison evaluation explanation breakdown analyse analysen \
        análisis detalles détails анализ подробности
    example: example sample snippet demo template mock fixture illustration beispiel beispiele exemple \
        exemples ejemplo ejemplos пример примеры
    note: note comment remark memo scratch scratchpad notebook feedback idea brainstorm hint background \
        notiz notizen hinweis hinweise bemerkung bemerkungen anmerkungen remarque remarques notas nota \
        observaciones заметка заметки примечание примечания
    reference: reference source link url uri citation bibliography resource documentation doc docs file \
        path paper glossary reading research knowledge related similar candidate dashboard attachment draft \
        quelle quellen verweise références sources fuentes referencias источники ссылки
    history: history conversation message chat timeline changelog dialogue turn verlauf historique \
        historial история
    setting: setting config configuration environment env option parameter hyperparameter dataset version \
        dependencies library einstellungen umgebung configuración настройки
    time: timestamp time at date datetime when heartbeat seen updated created modified expires expiry sync \
        ts epoch clock zeitstempel zeit datum heure fecha hora timestamps marca метка время дата
    duration: duration elapsed ms seconds sec secs millis minutes latency timeout interval ttl eta uptime \
        took runtime dauer sekunden durée duración длительность
    identifier: id uuid guid hash checksum sha digest etag fingerprint nonce revision ref correlation cursor
    metric: metric count counter total usage token cost score stats statistics size bytes memory cpu rate \
        retry temp temperature percent percentage iteration attempt telemetry benchmark seq rank confidence \
        metrik metriken métriques métricas метрики
    machine: host hostname pid ip port process thread worker runner pod container header headers cookie \
        cookies
    log: log logfile logs stdout stderr journal syslog protokoll registro registros журнал лог логи
    debug: debug trace stacktrace traceback backtrace stack verbose profiling profile internal
    raw-output: raw dump output response payload blob transcript console screenshot image base64 \
        cache buffer listing tree diff html xml ausgabe sortie salida вывод tmp
";

/// Phrases whose topic differs from the topic of their last word.
const PHRASES: &str = "
    decision: decision log|decision record|decision history|final decision|proposed decision
    requirement: acceptance criteria|success criteria|definition of done|exit criteria|done when|\
        success metric|success metrics|must have|must haves
    constraint: non goal|non goals|out of scope|due date|do not|must not|time limit|token limit|hard limit|\
        не должен
    instruction: system message|user message|user input|user query|user prompt|user story|user stories
    goal: problem statement|research question|research questions|user request|top priority|priority
    answer: final answer|final result|final output|final response|final recommendation
    plan: action item|action items|next action|next actions|next task|open task|open tasks|work plan|\
        plan de|pending task|pending tasks|remaining tasks|próximos pasos|prochaines étapes|\
        nächste schritte|следующие шаги|todo list|to do
    progress: current task|current goal|current file|active task|completed tasks|completed steps
    reasoning: chain of thought|trade off|trade offs|pros and cons|thought process|mental model
    finding: root cause|key results|test result|test results
    open-point: open issue|open issues|last error|current error|offene fragen|open points|known issues
    reference: relevant files|files touched|see also|search results|search result
    time: last updated|last modified|last seen|last sync
    place: workflow id|task id|checkpoint id|ticket id|issue id|issue number|pull request id|pr number
    requests: user prompts|user messages|user inputs|user queries|user requests|prompts|previous prompts
    identifier: cache key|session key|idempotency key|commit sha|run number
    metric: token usage|retry count|rate limit
    log: error log|access log|log file|log lines|log output|command history|commands run|shell history
    raw-output: tool output|tool call|tool calls|tool result|tool results|tool response|api response|\
        git status|directory listing|file tree|dir listing|file list
    debug: stack dump|stack trace|thread dump|core dump|heap dump|debug info
";

/// Words that decide at any position in a key: a raw plan is raw output, an example response is an example and a chosen
/// option is a decision.
const MODIFIERS: &str = "raw debug example sample dump traceback stacktrace beispiel ejemplo decided chosen selected \
    approved agreed";

/// Words that are ignored at the end of a key, so that the word before them decides.
const FILLERS: &str = "list text data info information item items value values content body description statement \
    summary section block made used entry entries record records string json md markdown yaml array set map name title \
    and of the for to in by with from v a an is are was";

/// Parts of keys in languages without spaces between words.
const UNSPACED: &str = "
    requirement: 受け入れ基準 受入基準 要件 要求 需求 验收标准 标准
    decision: 決定 决定 决策 決策
    constraint: 制約 制限 约束 限制 禁止 期限
    goal: 目的 目標 目标 任务 課題 依頼
    instruction: 指示 指令 规则 規則 ルール
    plan: 計画 计划 手順 步骤 ステップ 方針 方案 次の 下一步 待办
    reasoning: 考察 理由 推理 推論 思考 根拠 原因
    progress: 進捗 进度 状態 状态 現状
    open-point: 質問 问题 課題点 リスク 风险 未解決
    summary: 概要 まとめ 要約 总结 摘要
    analysis: 分析 詳細 详情
    example: 例 サンプル 示例 样例
    note: メモ 備考 备注 笔记 注意
    reference: 参考 資料 链接 出典
    log: ログ 日志 記録
    time: 日時 時刻 时间 時間 タイムスタンプ
    raw-output: 出力 输出
";

/// Index of the lists above, built on first use.
static INDEX: LazyLock<Index> = LazyLock::new(Index::build);

struct Index {
    words: HashMap<&'static str, Topic>,
    /// Phrases by first word, longest first.
    phrases: HashMap<&'static str, Vec<(Topic, &'static str)>>,
    unspaced: Vec<(Topic, &'static str)>,
    modifiers: HashSet<&'static str>,
    fillers: HashSet<&'static str>,
}

impl Index {
    fn build() -> Self {
        let mut words = HashMap::new();
        for (topic, word) in rows(WORDS, ' ') {
            // If two topics share a word, the first one wins.
            words.entry(word).or_insert(topic);
        }
        let mut phrases = by_first_word(rows(PHRASES, '|'));
        for list in phrases.values_mut() {
            list.sort_by_key(|(_, phrase)| std::cmp::Reverse(phrase.split(' ').count()));
        }
        Self {
            words,
            phrases,
            unspaced: rows(UNSPACED, ' ').collect(),
            modifiers: MODIFIERS.split_whitespace().collect(),
            fillers: FILLERS.split_whitespace().collect(),
        }
    }
}

pub(super) fn topic_of_word(word: &str) -> Option<Topic> {
    INDEX.words.get(word).copied()
}

/// Returns the topic of the phrase at the start of `words`, and the phrase.
pub(super) fn topic_of_phrase(words: &[String]) -> Option<(Topic, &'static str)> {
    let candidates = INDEX.phrases.get(words.first()?.as_str())?;
    candidates.iter().copied().find(|(_, phrase)| {
        let mut rest = words.iter();
        phrase.split(' ').all(|word| rest.next().is_some_and(|next| next == word))
    })
}

/// Returns the topic of the first known part of an unspaced word, and that part.
pub(super) fn topic_within(word: &str) -> Option<(Topic, &'static str)> {
    INDEX.unspaced.iter().copied().find(|(_, part)| word.contains(part))
}

/// Returns true if a word decides at any position in a key.
pub(super) fn is_modifier(word: &str) -> bool {
    INDEX.modifiers.contains(word)
}

/// Returns true if a word is ignored at the end of a key.
pub(super) fn is_filler(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit()) || INDEX.fillers.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::words::split;

    #[test]
    fn every_word_and_phrase_is_reachable() {
        for (_, word) in rows::<Topic>(WORDS, ' ') {
            assert_eq!(split(word).concat(), word, "a key never has this word");
        }
        for (_, phrase) in rows::<Topic>(PHRASES, '|') {
            assert_eq!(split(phrase).join(" "), phrase);
        }
    }

    #[test]
    fn every_line_has_a_known_topic() {
        for table in [WORDS, PHRASES, UNSPACED] {
            assert_eq!(rows::<Topic>(table, '\n').count(), table.trim().lines().count());
        }
    }
}
