/**
 * `npm run soak -- --for 10m`: finds the highest load that one daemon carries here, holds most of it for so
 * long, and says whether memory stays flat. Exit 1 where it falls behind, or anything is unaccounted for.
 */
import { parseArgs } from 'node:util'
import { duration } from '../../src/lib/config-fields.ts'
import { renderSoak, runSoak, isSteady } from './rig/run-soak.ts'

const { values } = parseArgs({
  options: {
    for: { type: 'string', default: '10m' },
    rate: { type: 'string' },
    json: { type: 'boolean' },
  },
})

const figures = await runSoak({
  holdMs: duration('').parse(values.for),
  perSecond: values.rate === undefined ? undefined : Number(values.rate),
})
process.stdout.write(values.json ? `${JSON.stringify(figures)}\n` : renderSoak(figures))
process.exitCode = isSteady(figures) ? 0 : 1
