/** `routes`: the tree with all that is inherited, and which way one event would take through it. */
import { Command } from 'commander'
import type { Config } from '../config/config.ts'
import { createRouter, type RouteNode } from '../routing/router.ts'
import { systemClock } from '../runtime/clock.ts'
import { loadConfigFile } from './config-file.ts'
import { addCommonOptions, print, type CommonOptions, type Context } from './context.ts'
import { explainRoutes, type ExplainRoutesOptions } from './routes-explain.ts'
import { knownSilences, missingLines } from './known-silences.ts'
import { groupingInWords, silenceJson, silenceLine } from './routes-words.ts'
import { spanInWords } from './words.ts'

export function routesCommand(context: Context): Command {
  const show = addCommonOptions(new Command('show'))
    .description('the routing tree with what each route inherits; silences and inhibit rules')
    .action((options: CommonOptions) => showRoutes(context, options))
  const explain = addCommonOptions(new Command('explain'))
    .description('which way an event would take now, and why')
    .option('--uid <uid>', 'of an event that was taken in; as it stands in a message will do')
    .option('--event <file>', 'an event as the search gives it, in JSON; - for standard input')
    .option('--feed <name>', 'as if this feed had brought it')
    .option('--account <name>', 'with --uid: only what this account knows')
    .action((options: ExplainRoutesOptions) => explainRoutes(context, options))
  return new Command('routes').addCommand(show).addCommand(explain)
}

async function showRoutes(context: Context, options: CommonOptions): Promise<void> {
  const { config } = loadConfigFile(context, options.config)
  const { root } = createRouter(config.route)
  const known = await knownSilences(config)
  const nowMs = systemClock.now()
  print(context, options, {
    json: {
      root: nodeJson(root),
      silences: known.silences.map(silenceJson),
      silences_by_command_known: known.missing === undefined,
      inhibit_rules: config.inhibitRules.map(ruleJson),
    },
    lines: () => [
      ...nodeLines(root),
      ...headed('silences', [
        ...known.silences.map((silence) => silenceLine(silence, nowMs)),
        ...missingLines(known),
      ]),
      ...headed('inhibit rules', config.inhibitRules.map(ruleLine)),
    ],
  })

  function headed(heading: string, lines: string[]): string[] {
    return lines.length === 0 ? [] : [context.terminal.paint('bold', heading), ...lines]
  }
}

function nodeJson(node: RouteNode): Record<string, unknown> {
  return {
    name: node.name,
    stage: node.stage,
    matchers: node.matchers.map(({ text }) => text),
    sinks: node.sinks,
    continue: node.continue,
    group_by: node.groupBy,
    group_wait_seconds: node.groupWaitMs / 1000,
    group_interval_seconds: node.groupIntervalMs / 1000,
    mute_time_intervals: node.muteTimeIntervals,
    on_mute: node.onMute,
    routes: node.routes.map(nodeJson),
  }
}

/** Grouping is said where it differs from the parent's. */
function nodeLines(node: RouteNode, parent?: RouteNode): string[] {
  const indent = '  '.repeat(node.path.length - 1)
  const grouping = groupingInWords(node)
  const { muteTimeIntervals: mutes, onMute } = node
  return [
    `${indent}${headOf(node)}`,
    ...(parent && groupingInWords(parent) === grouping ? [] : [`${indent}    ${grouping}`]),
    ...(mutes.length > 0
      ? [`${indent}    muted by ${mutes.join(', ')}: ${muteWords[onMute]}`]
      : []),
    ...node.routes.flatMap((child) => nodeLines(child, node)),
  ]
}

const muteWords = { hold: 'held until it is over', drop: 'dropped' }

function headOf({ name, path, matchers, sinks, ...node }: RouteNode): string {
  const rest = path.length === 1 ? 'the rest' : 'every event'
  const when = matchers.length === 0 ? rest : matchers.map(({ text }) => text).join(' and ')
  const stage = node.stage === 'shadow' ? ' (shadow: recorded, never sent)' : ''
  const goesOn = node.continue && !node.isAside ? ', and the search goes on' : ''
  return `${name}${stage}: ${when} → ${sinks.join(', ')}${goesOn}`
}

type Rule = Config['inhibitRules'][number]

function ruleJson(rule: Rule): Record<string, unknown> {
  return {
    name: rule.name,
    source_matchers: rule.sourceMatchers.map(({ text }) => text),
    target_matchers: rule.targetMatchers.map(({ text }) => text),
    equal: rule.equal,
    window_seconds: rule.windowMs / 1000,
  }
}

function ruleLine({ name, sourceMatchers, targetMatchers, equal, windowMs }: Rule): string {
  const [source, target] = [sourceMatchers, targetMatchers].map((matchers) =>
    matchers.map(({ text }) => text).join(' and '),
  )
  const same = equal.length === 0 ? '' : ` with the same ${equal.join(', ')}`
  return `  ${name}: ${source} keeps back ${target}${same}, for ${spanInWords(windowMs)}`
}
