// The server's rows in the page's own words.

import { formatNs, parseTime, textOf } from './format.js';

/**
 * @typedef {Object} Execution
 * @property {string} id
 * @property {string} shortId
 * @property {string} name what to call the run: the last part of its source's label, else its entry function
 * @property {string} entry entry function, empty where the name tells it
 * @property {string} label source label, empty where the name tells it
 * @property {string} program
 * @property {string} status
 * @property {string|null} verdict
 * @property {Date|null} started
 * @property {Date|null} ended
 * @property {number|string|null} duration ns
 * @property {number|string|null} calls
 * @property {number|string|null} errors
 * @property {number|string|null} cancelled
 */

/** @returns {Execution} */
export function readExecution(row) {
    const label = textOf(row.source_label);
    const entry = textOf(row.entry_display_name) || textOf(row.entry_fqn);
    const name = label.split(/[/\\]/).pop() || entry || '(unnamed run)';
    return {
        id: row.execution_id,
        shortId: row.short_id,
        name,
        entry: entry === name ? '' : entry,
        label: label === name ? '' : label,
        program: row.program_id || '',
        status: row.status || 'unknown',
        verdict: row.verdict || (row.evidence && row.evidence.verdict) || null,
        started: parseTime(row.started_at),
        ended: parseTime(row.ended_at),
        duration: row.duration_ns ?? null,
        calls: row.total_calls ?? null,
        errors: row.total_errors ?? null,
        cancelled: row.total_cancelled ?? null,
    };
}

/**
 * How long a run took, or has taken so far.
 * @param {Execution} run
 * @param {Date} now
 * @returns {{text: string, soFar: boolean}}
 */
export function durationOf(run, now) {
    if (run.duration !== null || run.status !== 'running' || !run.started)
        return { text: formatNs(run.duration), soFar: false };
    const seconds = Math.max(0, Math.floor((now.getTime() - run.started.getTime()) / 1000));
    return { text: seconds < 60 ? `${seconds} s` : formatNs(seconds * 1e9), soFar: true };
}
