/** The alerts, from the rules of Prometheus. */
import { alertRules, type AlertRule } from '../support/alert-rules.ts'
import { plain, table } from './markdown.ts'

export function alertBlocks(): [string, string][] {
  const rules = alertRules()
  const list = table(
    ['Severity', 'Alerts'],
    ['critical', 'warning', 'info'].map((severity) => [
      severity,
      rules
        .filter(({ labels }) => labels['severity'] === severity)
        .map(({ alert }) => `[${alert}](#${alert.toLowerCase()})`)
        .join(', '),
    ]),
  )
  return [
    ['alerts by severity', list],
    ['alerts', rules.map(sectionOf).join('\n\n')],
  ]
}

function sectionOf({ alert, for: wait, labels, annotations }: AlertRule): string {
  const { summary = '', description = '', remedy = '' } = annotations
  const after = wait === undefined ? 'at once' : `after ${wait}`
  return [
    `### ${alert}`,
    `Severity **${labels['severity'] ?? ''}**, rings ${after}. ${withPlaceholders(summary)} ${withPlaceholders(description)}`,
    `**Do:** ${withPlaceholders(remedy)}`,
  ].join('\n\n')
}

/** What Prometheus fills in, by its name. */
function withPlaceholders(text: string): string {
  return plain(text.trim())
    .replaceAll(/(\{\{ *end *\}\})(\{\{ *with)/g, '$1 or $2')
    .replaceAll(
      /\{\{ *with \$labels\.(\w+) *\}\}(.*?)\{\{ *end *\}\}/g,
      (_all, label: string, said: string) => said.replace('{{ . }}', `_${label}_`),
    )
    .replaceAll(/\{\{ *\$labels\.(\w+) *\}\}/g, '_$1_')
    .replaceAll(/\{\{ *\$value[^}]*\}\}/g, '_value_')
}
