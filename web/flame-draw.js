// Paints a laid-out flame graph on a canvas. Work is proportional to the boxes on the screen: a box below a pixel ends
// the walk to its children and, as siblings stand widest first, to the siblings after it.

import { EDGE, FLAG } from './flame-layout.js';
import { formatCount, functionName } from './format.js';

export const ROW = 22;
const BOX = ROW - 1;
const MIN_WIDTH = 1;
const MIN_LABEL = 30;
const PAD = 6;
const FONT = '12px system-ui, sans-serif';

const CHROME = {
    light: {
        hatchPaper: '#e9e5de',
        hatchInk: '#bdb5a8',
        spawn: '#6d3fc4',
        error: '#c8281e',
        ring: '#0b5f68',
        hover: 'rgb(0 0 0 / 12%)',
        match: '#0b5f68',
        rest: 'rgb(90 80 65 / 16%)',
        veil: 'rgb(250 249 246 / 45%)',
        open: '#0b7f6f',
    },
    dark: {
        hatchPaper: '#2b3036',
        hatchInk: '#4b525a',
        spawn: '#b79bf5',
        error: '#ff7b6e',
        ring: '#8ee3da',
        hover: 'rgb(255 255 255 / 16%)',
        match: '#8ee3da',
        rest: 'rgb(200 195 185 / 14%)',
        veil: 'rgb(22 25 28 / 45%)',
        open: '#5fd3bf',
    },
};

/** Words for a node that is no function. */
export function specialName(flame, node) {
    const flags = flame.flags[node];
    if (flags & FLAG.sliver) return `${formatCount(flame.nodes[node])} narrower frames`;
    if (flags & FLAG.overflow) return '(calls without a path: overflow)';
    return '(unknown function)';
}

/** A node's name as people read it. */
export function nameOf(flame, node) {
    const fn = flame.fn[node];
    if (fn < 0) return specialName(flame, node);
    return functionName(flame.functions[fn]);
}

// Shorter forms of a name like "module:Class.method", for narrow boxes: without its module, then its last part alone.
function shorter(name) {
    const match = /^(?:[\p{L}\p{N}_$/.#-]*:)?([\p{L}\p{N}_$/.:#[\]-]+)$/u.exec(name);
    if (!match) return [name, name];
    const last = /[\p{L}_$][\p{L}\p{N}_$#[\]]*$/u.exec(match[1]);
    return [match[1], last ? last[0] : match[1]];
}

/** Paints; keeps what is costly between frames: measured names and hatch patterns. */
export class Painter {
    /** @param {HTMLCanvasElement} canvas */
    constructor(canvas) {
        this.canvas = canvas;
        this.ctx = canvas.getContext('2d', { alpha: false });
        this.names = new Map();
        this.hatch = new Map();
        this.stack = new Int32Array(1024);
    }

    /** Sizes the canvas to whole device pixels. */
    resize(width, height, ratio) {
        const w = Math.max(1, Math.round(width * ratio));
        const h = Math.max(1, Math.round(height * ratio));
        if (this.canvas.width !== w || this.canvas.height !== h) {
            this.canvas.width = w;
            this.canvas.height = h;
        }
        this.width = width;
        this.height = height;
        this.ratio = ratio;
    }

    /**
     * @param {Object} scene flame, place (layout), colours (palette), theme, from, to (part of all in view),
     *   top (pixels scrolled), zoom (node or -1), selected, hovered, matches (per function, or null), paper
     * @returns {number} boxes drawn
     */
    paint(scene) {
        const { ctx } = this;
        this.scene = scene;
        this.chrome = CHROME[scene.theme];
        this.scale = this.width / (scene.to - scene.from);
        ctx.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
        ctx.fillStyle = scene.paper;
        ctx.fillRect(0, 0, this.width, this.height);
        ctx.font = FONT;
        ctx.textBaseline = 'middle';
        const drawn = this.walk();
        this.outline(scene.hovered, 1);
        this.outline(scene.selected, 2);
        return drawn;
    }

    walk() {
        const { flame, place } = this.scene;
        const { first, order, x, w, depth } = place;
        const from = this.scene.from;
        const lastRow = Math.floor((this.scene.top + this.height) / ROW);
        let drawn = 0;
        let used = 0;
        this.push(used++, flame.count);
        while (used > 0) {
            const node = this.stack[--used];
            const below = depth[node] + 1;
            if (below > lastRow) continue;
            const end = first[node + 1];
            for (let k = first[node]; k < end; k++) {
                const child = order[k];
                const left = (x[child] - from) * this.scale;
                if (left >= this.width) break;
                const width = w[child] * this.scale;
                if (width < MIN_WIDTH && !(flame.flags[child] & FLAG.sliver)) {
                    drawn += this.rest(node, k, left, below);
                    break;
                }
                if (left + width <= 0) continue;
                this.box(child, left, width, below);
                drawn++;
                if (first[child] < first[child + 1]) this.push(used++, child);
            }
        }
        return drawn;
    }

    push(index, node) {
        if (index === this.stack.length) {
            const larger = new Int32Array(index * 2);
            larger.set(this.stack);
            this.stack = larger;
        }
        this.stack[index] = node;
    }

    // Siblings too narrow to show stand side by side: shown as one pale block, so that no time looks absent.
    rest(node, from, left, row) {
        const { place } = this.scene;
        const last = place.order[place.first[node + 1] - 1];
        const right = Math.min(this.width, (place.x[last] + place.w[last] - this.scene.from) * this.scale);
        const start = Math.max(0, left);
        const y = row * ROW - this.scene.top;
        if (right - start < 0.5 || y + BOX < 0) return 0;
        this.ctx.fillStyle = this.chrome.rest;
        this.ctx.fillRect(start, y, right - start, BOX);
        return 1;
    }

    box(node, left, width, row) {
        const { scene, ctx } = this;
        const y = row * ROW - scene.top;
        if (y + BOX < 0) return;
        const start = Math.max(0, left);
        const visible = Math.min(this.width, left + width) - start;
        const gap = width > 3 ? 1 : width > 1.5 ? 0.5 : 0;
        const fn = scene.flame.fn[node];
        const dim = scene.matches && !(fn >= 0 && scene.matches[fn]);
        ctx.fillStyle = this.fill(node, fn, dim);
        ctx.fillRect(start, y, visible - gap, BOX);
        if (visible < 4) return;
        this.marks(node, fn, start, y, left, width, visible - gap);
        if (visible >= MIN_LABEL) this.label(node, fn, start, y, visible - gap, dim);
    }

    fill(node, fn, dim) {
        const { colours, flame } = this.scene;
        const odd = FLAG.overflow | FLAG.parentMissing | FLAG.undefined | FLAG.sliver;
        if (fn < 0) return this.hatching(this.chrome.hatchPaper);
        const colour = dim ? colours.faded[fn] : colours.fills[fn];
        return flame.flags[node] & odd ? this.hatching(colour) : colour;
    }

    hatching(paper) {
        const key = `${this.scene.theme} ${this.ratio} ${paper}`;
        let pattern = this.hatch.get(key);
        if (!pattern) {
            if (this.hatch.size > 500) this.hatch.clear();
            pattern = this.makeHatching(paper);
            this.hatch.set(key, pattern);
        }
        return pattern;
    }

    makeHatching(paper) {
        const side = Math.round(8 * this.ratio);
        const tile = new OffscreenCanvas(side, side);
        const ctx = tile.getContext('2d');
        ctx.fillStyle = paper;
        ctx.fillRect(0, 0, side, side);
        ctx.strokeStyle = this.chrome.hatchInk;
        ctx.lineWidth = 1.4 * this.ratio;
        for (const shift of [-side, 0, side]) {
            ctx.beginPath();
            ctx.moveTo(shift - side * 0.25, side * 1.25);
            ctx.lineTo(shift + side * 1.25, -side * 0.25);
            ctx.stroke();
        }
        const pattern = this.ctx.createPattern(tile, 'repeat');
        pattern.setTransform(new DOMMatrix([1 / this.ratio, 0, 0, 1 / this.ratio, 0, 0]));
        return pattern;
    }

    marks(node, fn, start, y, left, width, visible) {
        const { flame, matches, zoom, place } = this.scene;
        const { ctx, chrome } = this;
        if (zoom >= 0 && place.depth[node] < place.depth[zoom]) {
            ctx.fillStyle = chrome.veil;
            ctx.fillRect(start, y, visible, BOX);
        }
        if (flame.edge[node] === EDGE.spawn && left >= 0) {
            ctx.fillStyle = chrome.spawn;
            for (let part = 0; part < BOX; part += 6) ctx.fillRect(start, y + part, 3, Math.min(4, BOX - part));
        }
        if (flame.flags[node] & FLAG.open && left + width <= this.width + 1) {
            ctx.fillStyle = chrome.open;
            ctx.fillRect(start + visible - 2, y, 2, BOX);
        }
        if (flame.errors[node] > 0 && visible > 8) {
            ctx.fillStyle = chrome.error;
            ctx.beginPath();
            ctx.moveTo(start + visible - 7, y);
            ctx.lineTo(start + visible, y);
            ctx.lineTo(start + visible, y + 7);
            ctx.fill();
        }
        if (matches && fn >= 0 && matches[fn]) {
            ctx.fillStyle = chrome.match;
            ctx.fillRect(start, y + BOX - 2, visible, 2);
        }
    }

    label(node, fn, start, y, width, dim) {
        const { colours, flame, zoom, place } = this.scene;
        const text = this.fit(fn < 0 ? specialName(flame, node) : nameOf(flame, node), width - 2 * PAD);
        if (!text) return;
        const above = zoom >= 0 && place.depth[node] < place.depth[zoom];
        this.ctx.fillStyle = dim || above ? colours.soft : colours.text;
        this.ctx.fillText(text, start + PAD, Math.round(y + BOX / 2) + 0.5);
    }

    measured(name) {
        let known = this.names.get(name);
        if (!known) {
            if (this.names.size > 20000) this.names.clear();
            known = { width: this.ctx.measureText(name).width, cut: '', cutFor: -1 };
            this.names.set(name, known);
        }
        return known;
    }

    // The name, or the first of its shorter forms that fits; else as much of the last as fits, cut between code points.
    fit(name, room) {
        const whole = this.measured(name);
        if (whole.width <= room) return name;
        const [local, short] = shorter(name);
        if (this.measured(local).width <= room) return local;
        const known = this.measured(short);
        if (known.width <= room) return short;
        const slot = Math.floor(room / 2);
        if (known.cutFor === slot) return known.cut;
        const points = Array.from(short.slice(0, 400));
        let length = Math.min(points.length, Math.floor((short.length * room) / known.width));
        let text = '';
        while (length > 0) {
            text = `${points.slice(0, length).join('')}\u2026`;
            if (this.ctx.measureText(text).width <= room) break;
            length--;
            text = '';
        }
        known.cut = length >= 2 || points.length <= 2 ? text : '';
        known.cutFor = slot;
        return known.cut;
    }

    outline(node, thickness) {
        if (node < 0) return;
        const { scene, ctx } = this;
        const { x, w, depth } = scene.place;
        const left = Math.max(0, (x[node] - scene.from) * this.scale);
        const right = Math.min(this.width, (x[node] + w[node] - scene.from) * this.scale);
        const y = depth[node] * ROW - scene.top;
        if (right <= left && right <= 0) return;
        if (thickness === 1) {
            ctx.fillStyle = this.chrome.hover;
            ctx.fillRect(left, y, Math.max(1, right - left - 1), BOX);
            return;
        }
        ctx.strokeStyle = this.chrome.ring;
        ctx.lineWidth = thickness;
        ctx.strokeRect(left + 1, y + 1, Math.max(1, right - left - 3), BOX - 2);
    }
}
