// What is known of one frame, in words and numbers: for the tooltip, the line below the graph, and who hears the page.

import { h } from './dom.js';
import { nameOf } from './flame-draw.js';
import { exactValue, FLAG } from './flame-layout.js';
import { formatCount, formatNs, formatPlace, formatShare, plural, textOf } from './format.js';
import { edgeWords } from './words.js';

const FLAG_WORDS = [
    [FLAG.open, 'still open: its time so far is that of what it called'],
    [FLAG.overflow, 'memory for paths ran out: counted without a path'],
    [FLAG.parentMissing, 'its caller is missing from the recording'],
    [FLAG.undefined, 'its definition is missing from the recording'],
    [FLAG.timingIncomplete, 'its times are incomplete'],
    [FLAG.sliver, 'folded, as too narrow to draw: zoom in to see them'],
];

/** Flags and edge of a frame in words. */
export function notesOf(flame, place, node) {
    const notes = FLAG_WORDS.filter(([bit]) => flame.flags[node] & bit).map(([, words]) => words);
    const edge = edgeWords(flame.edge[node]);
    if (edge && flame.parent[node] >= 0) notes.push(edge);
    if (place.squeezed[node])
        notes.push('what it spawned overlaps, so its callees are drawn narrower than to scale');
    return notes;
}

/** Where a frame's function is, or what it is where it has no file. */
export function placeOf(flame, node) {
    const fn = flame.functions[flame.fn[node]];
    if (!fn) return '';
    return formatPlace(fn.file, fn.line) || textOf(fn.kind);
}

function figures(model, node) {
    const { flame } = model;
    const ns = (name) => formatNs(exactValue(flame, name, node));
    const count = (name) => formatCount(exactValue(flame, name, node));
    const rows = [
        ['Calls', count('calls')],
        ['Inclusive', ns('inclusive')],
        ['Self', ns('self')],
        ['Await', ns('await')],
        ['Errors', count('errors')],
    ];
    if (flame.cancelled[node] > 0) rows.push(['Cancelled', count('cancelled')]);
    if (flame.open[node] !== 0) rows.push(['Open', count('open')]);
    return rows;
}

function shares(model, node) {
    const { flame, place } = model;
    const size = place.size[node];
    const up = flame.parent[node];
    const rows = [['Of total', formatShare(size, model.total)]];
    if (up >= 0) rows.push(['Of parent', formatShare(size, place.size[up])]);
    return rows;
}

function figureList(rows) {
    return h(
        'dl.figures',
        {},
        ...rows.map(([label, value]) => h('div', {}, h('dt', { text: label }), h('dd', { text: value })))
    );
}

/** The tooltip's content. */
export function tooltip(model, node) {
    const { flame, place } = model;
    const where = placeOf(flame, node);
    return [
        h('div.tip-name', { dir: 'auto', text: nameOf(flame, node) }),
        where && h('div.tip-place', { dir: 'auto', text: where }),
        figureList([...shares(model, node), ...figures(model, node)]),
        ...notesOf(flame, place, node).map((note) => h('div.tip-note', { text: note })),
    ].filter(Boolean);
}

/** The content of the line below the graph. */
export function details(model, node) {
    const { flame, place } = model;
    return [
        h(
            'div.detail-name',
            {},
            h('strong', { dir: 'auto', text: nameOf(flame, node) }),
            h('span.muted', { dir: 'auto', text: placeOf(flame, node) })
        ),
        figureList([...shares(model, node), ...figures(model, node)]),
        h('div.detail-notes', { text: notesOf(flame, place, node).join('; ') }),
    ];
}

/** One sentence about a frame. */
export function sentence(model, node, metric) {
    const { flame, place } = model;
    const up = flame.parent[node];
    return [
        `${nameOf(flame, node)}: ${metric.label.toLowerCase()} ${metric.format(place.size[node])}`,
        `${formatShare(place.size[node], model.total)} of total`,
        up >= 0 ? `${formatShare(place.size[node], place.size[up])} of its caller` : 'top level',
        plural(exactValue(flame, 'calls', node), 'call'),
        ...notesOf(flame, place, node),
    ].join(', ');
}
