// A few lines of TAP: named tests, run in order, one failure not ending the rest.

let count = 0;
let failed = 0;

/** Runs one test; what it throws is its failure. */
export async function test(name, run) {
    count++;
    try {
        await run();
        process.stdout.write(`ok ${count} - ${name}\n`);
    } catch (error) {
        failed++;
        process.stdout.write(`not ok ${count} - ${name}\n`);
        const text = error && error.stack ? error.stack : String(error);
        process.stdout.write(
            `${text
                .split('\n')
                .slice(0, 12)
                .map((line) => `# ${line}`)
                .join('\n')}\n`
        );
    }
}

/** Prints the plan and sets the exit status. */
export function done() {
    process.stdout.write(`1..${count}\n`);
    process.exitCode = failed ? 1 : 0;
}
