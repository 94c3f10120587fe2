import { type Finding, formatFinding, type Status } from '../operator/probes/probe.ts'
import { sanitize, type Style, type Terminal } from './terminal.ts'

const styles: Record<Status, Style> = {
  ok: 'green',
  warning: 'yellow',
  problem: 'red',
}
const statusWidth = 'problem'.length

export function findingLine(terminal: Terminal, finding: Finding): string {
  const { status } = finding
  const word = terminal.paint(styles[status], status.padEnd(statusWidth))
  return `${word}  ${sanitize(formatFinding(finding), 1_200)}`
}
