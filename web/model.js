// The server's rows in the page's own words.

import { parseTime, textOf } from './format.js';

/**
 * @typedef {Object} Execution
 * @property {string} id
 * @property {string} shortId
 * @property {string} name entry function, else the source's label
 * @property {string} label source label
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
    const name = textOf(row.entry_display_name) || textOf(row.entry_fqn);
    return {
        id: row.execution_id,
        shortId: row.short_id,
        name: name || label || '(unnamed run)',
        label,
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
