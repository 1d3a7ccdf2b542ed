// Numbers and times as people read them. Values are JSON numbers, or decimal strings above 2^53.

const NONE = '\u2013';
const UNITS = [
    { below: 1e3, by: 1, unit: 'ns' },
    { below: 1e6, by: 1e3, unit: '\u00b5s' },
    { below: 1e9, by: 1e6, unit: 'ms' },
    { below: 60e9, by: 1e9, unit: 's' },
];

/** @typedef {number|string|null|undefined} Count an exact integer as the server wrote it */

/** A count as a double: exact up to 2^53, near enough for drawing beyond; null stays null. */
export function toNumber(value) {
    if (value === null || value === undefined || value === '') return null;
    const number = Number(value);
    return Number.isFinite(number) ? number : null;
}

/** Orders two counts exactly; unknown ones come before all others. */
export function compareCounts(a, b) {
    const an = a === null || a === undefined;
    const bn = b === null || b === undefined;
    if (an || bn) return Number(bn) - Number(an);
    if (typeof a === 'number' && typeof b === 'number') return a - b;
    const x = BigInt(a);
    const y = BigInt(b);
    return x < y ? -1 : x > y ? 1 : 0;
}

/** "1,234,567", exact whatever the size; unknown is a dash. */
export function formatCount(value) {
    if (value === null || value === undefined) return NONE;
    const text = typeof value === 'number' ? Math.round(value).toString() : String(value);
    if (!/^-?\d+$/.test(text)) return NONE;
    // By hand: loading the browser's own formatter takes longer than a page of numbers is worth.
    return text.replace('-', '\u2212').replace(/\B(?=(\d{3})+$)/g, ',');
}

function digits(value) {
    const size = Math.abs(value);
    return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function pair(big, bigUnit, small, smallUnit) {
    return `${formatCount(big)} ${bigUnit} ${String(small).padStart(2, '0')} ${smallUnit}`;
}

/** Nanoseconds in the unit that suits them: "12.3 ms", "2 m 05 s", "3 d 04 h". */
export function formatNs(value) {
    const ns = toNumber(value);
    if (ns === null) return NONE;
    if (ns < 0) return `\u2212${formatNs(-ns)}`;
    if (ns === 0) return '0';
    for (const { below, by, unit } of UNITS) {
        if (ns >= below) continue;
        const text = by === 1 ? String(ns) : digits(ns / by);
        // 999.96 µs would read as 1000 µs: let the next unit have it.
        if (text === '1000') continue;
        return `${text} ${unit}`;
    }
    const seconds = Math.round(ns / 1e9);
    if (seconds < 3600) return pair(Math.floor(seconds / 60), 'm', seconds % 60, 's');
    const minutes = Math.round(seconds / 60);
    if (minutes < 1440) return pair(Math.floor(minutes / 60), 'h', minutes % 60, 'm');
    const hours = Math.round(minutes / 60);
    return pair(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

/** A metric's value in its unit. */
export function formatMetric(value, unit) {
    return unit === 'ns' ? formatNs(value) : formatCount(value);
}

/** A share as per cent; null where there is no base. */
export function formatShare(part, whole) {
    if (part === null || part === undefined || !(whole > 0)) return NONE;
    const percent = (part / whole) * 100;
    if (percent === 0) return '0 %';
    if (percent >= 99.95) return percent > 100.05 ? `${percent.toFixed(0)} %` : '100 %';
    if (percent < 0.01) return '< 0.01 %';
    return `${percent < 1 ? percent.toFixed(2) : percent.toFixed(1)} %`;
}

function two(value) {
    return String(value).padStart(2, '0');
}

/**
 * A moment in local time: the time alone for today, with the date otherwise.
 * @param {Date|null} date
 * @param {Date} now
 */
export function formatTime(date, now) {
    if (!date) return NONE;
    const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
    if (date.toDateString() === now.toDateString()) return time;
    return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
}

/** How long ago: "just now", "12 s ago", "3 min ago", "5 h ago", "12 days ago". */
export function formatAgo(date, now) {
    if (!date) return '';
    const seconds = Math.floor((now.getTime() - date.getTime()) / 1000);
    if (seconds < 2) return 'just now';
    if (seconds < 60) return `${seconds} s ago`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
    if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
    const days = Math.floor(seconds / 86400);
    return days === 1 ? 'yesterday' : `${days} days ago`;
}

/** A moment from the server's text (RFC 3339, up to nine digits of a second), or null. */
export function parseTime(text) {
    if (typeof text !== 'string') return null;
    const date = new Date(text.replace(/(\.\d{3})\d+/, '$1'));
    return Number.isNaN(date.getTime()) ? null : date;
}

// Characters that would hide or reorder what stands around them: controls, and marks that override the direction.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/**
 * Text of a JSON value that is a string, or the server's form for bytes that are not UTF-8. Controls show as pictures.
 */
export function textOf(value) {
    const text =
        typeof value === 'string'
            ? value
            : value && typeof value.preview === 'string'
              ? value.preview
              : value === null || value === undefined
                ? ''
                : String(value);
    return text.replace(UNSEEN, (c) => (c < ' ' ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : '\ufffd'));
}

/** A function's name as people read it; one whose definition was lost goes by its number. */
export function functionName(fn) {
    if (fn.name === null || fn.name === undefined) return `function#${fn.function_id ?? '?'}`;
    return textOf(fn.name) || '(no name)';
}

/** "file.lua:12"; a line of zero or null is left out. */
export function formatPlace(file, line) {
    const name = textOf(file);
    if (!name) return '';
    return line > 0 ? `${name}:${line}` : name;
}

/** "1 call", "2 calls". */
export function plural(count, one, many = `${one}s`) {
    return `${formatCount(count)} ${Number(count) === 1 ? one : many}`;
}
