// States and evidence in words.

import { formatCount, plural } from './format.js';

const STATUS = {
    running: ['Running', 'The program is still running, or was when it last wrote.'],
    succeeded: ['Succeeded', 'The program ended without an error.'],
    failed: ['Failed', 'The program ended with an error.'],
    cancelled: ['Cancelled', 'The program was cancelled.'],
    panicked: ['Panicked', 'The program was stopped by a fault in its host.'],
    abandoned: ['Abandoned', 'The process died before the run was closed. All that it had committed is here.'],
    unknown: ['Unknown', 'The record that tells how the run ended is not there.'],
};

const VERDICT = {
    complete: ['Complete', 'Nothing is missing: every call of this run is counted.'],
    running: ['Live', 'Nothing is missing so far. Numbers grow while the program runs.'],
    partial: ['Partial', 'Something was not recorded. All numbers are lower bounds.'],
    damaged: ['Damaged', 'Part of the recording is missing or unreadable. All numbers are lower bounds.'],
};

const EDGE_WORDS = {
    0: 'entry of the run',
    1: '',
    2: 'spawned: runs beside its parent and takes nothing off its time',
    3: 'the way it was called is not known',
    4: '',
};

const ISSUES = new Map([
    ['missing_data_segment', 'a segment of the recording is missing'],
    ['function_table', 'the table of the functions’ names can’t be read'],
    ['corrupt_data_segment', 'a segment of the recording is unreadable'],
    ['group_count_mismatch', 'the recording holds another number of groups than it announced'],
    ['unresolved_dependency', 'the recording refers to something that is not in it'],
    ['fold_error', 'a record contradicts the others'],
    ['index_corrupt', 'the index of the recording is damaged'],
    ['root_started_lost', 'the record of the start is missing'],
    ['no_root_ended', 'the record of the end is missing'],
    ['stream_error', 'part of the store cannot be read'],
]);

const LOSSES = new Map([
    ['corrupt_records', 'records that the recorder could not read'],
    ['active_thread_capacity_exceeded', 'threads not followed, as too many ran at once'],
    ['active_call_capacity_exceeded', 'calls not followed, as too many were open at once'],
    ['join_capacity_exceeded', 'facts dropped, as too many waited for what they belong to'],
    ['unmatched_call_facts', 'facts without the call that they belong to'],
    ['unmatched_thread_facts', 'facts without the thread that they belong to'],
    ['clock_invalid', 'times that ran backwards'],
    ['cct_file_publish_failed', 'segments of counts that could not be written'],
    ['evidence_queue_full', 'records of single calls dropped, as their queue was full'],
    ['evidence_file_publish_failed', 'segments of single calls that could not be written'],
]);

/** "evidence_queue_full" as "evidence queue full". */
export function plain(word) {
    return String(word).replace(/_/g, ' ');
}

/** @returns {{label: string, help: string, key: string}} */
export function statusWords(status) {
    const key = Object.hasOwn(STATUS, status) ? status : 'unknown';
    return { key, label: STATUS[key][0], help: STATUS[key][1] };
}

/** @returns {{label: string, help: string, key: string}|null} null where there is no verdict */
export function verdictWords(verdict) {
    if (!Object.hasOwn(VERDICT, verdict)) return null;
    return { key: verdict, label: VERDICT[verdict][0], help: VERDICT[verdict][1] };
}

/** How a frame came to be, where that is worth a word. */
export function edgeWords(edge) {
    return EDGE_WORDS[edge] || '';
}

function issueLines(evidence) {
    const kinds = new Map();
    for (const issue of evidence.issues || []) {
        const list = kinds.get(issue.kind) || [];
        if (issue.sequence !== undefined && issue.sequence !== null) list.push(issue.sequence);
        kinds.set(issue.kind, list);
    }
    const lines = [];
    for (const [kind, sequences] of kinds) {
        const words = ISSUES.get(kind) || plain(kind);
        const shown = sequences.slice(0, 8).join(', ') + (sequences.length > 8 ? ', \u2026' : '');
        lines.push(sequences.length ? `${words} (${shown})` : words);
    }
    const more = (evidence.issues_total || 0) - (evidence.issues || []).length;
    if (more > 0) lines.push(`${plural(more, 'more issue')}`);
    return lines;
}

/**
 * What is missing from an answer, one line each; empty where nothing is.
 * @param {Object} evidence
 * @returns {string[]}
 */
export function evidenceLines(evidence) {
    if (!evidence) return [];
    const lines = issueLines(evidence);
    for (const [name, count] of Object.entries(evidence.losses || {}))
        lines.push(`${LOSSES.get(name) || plain(name)}: ${formatCount(count)}`);
    if (Number(evidence.overflow_calls) > 0) {
        lines.push(
            `${plural(evidence.overflow_calls, 'call')} counted without a path, as memory for paths ran out`
        );
    }
    if (Number(evidence.timing_incomplete) > 0) {
        lines.push(`times are incomplete on ${plural(evidence.timing_incomplete, 'path')}`);
    }
    if (evidence.abandoned > 0)
        lines.push('the process died before the run was closed; what it had committed is here');
    for (const equation of evidence.equations || []) {
        if (equation.holds === false) {
            lines.push(
                `${plain(equation.name)}: ${formatCount(equation.left)} on one side, ` +
                    `${formatCount(equation.right)} on the other`
            );
        }
    }
    return lines;
}
