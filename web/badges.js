// Pills and badges that lists and headers share.

import { h, setAttr, setText } from './dom.js';
import { statusWords, verdictWords } from './words.js';

/** An empty pill, filled by showStatus. */
export function statusPill() {
    return h('span.pill', {}, h('span.pill-dot'), h('span.pill-text'));
}

export function showStatus(pill, status) {
    const words = statusWords(status);
    setAttr(pill, 'data-status', words.key);
    setAttr(pill, 'title', words.help);
    setText(pill.lastChild, words.label);
}

/** An empty badge, filled by showVerdict. */
export function verdictBadge() {
    return h('span.badge');
}

/** @param {string[]} lines what is missing, for the tooltip */
export function showVerdict(badge, verdict, lines = []) {
    const words = verdictWords(verdict);
    badge.hidden = !words;
    if (!words) return;
    setAttr(badge, 'data-verdict', words.key);
    setAttr(badge, 'title', [words.help, ...lines.map((line) => `\u2022 ${line}`)].join('\n'));
    setText(badge, words.label);
}

/** A message in place of content. */
export function emptyState(title, ...body) {
    return h('div.empty', {}, h('h2', { text: title }), ...body);
}

/** In place of the calls of a run that has none. */
export function noCalls(running) {
    return running
        ? emptyState('No calls yet', h('p', { text: 'They appear here as soon as the program commits some.' }))
        : emptyState('No calls', h('p', { text: 'The recording of this run holds none.' }));
}
