/** `cookies search`: stolen cookies of a domain, with their values masked unless revealed. */
import { Command, Option } from 'commander'
import { systemClock } from '../../lib/clock.ts'
import { fullMask } from '../../masking/mask-secret.ts'
import { maskKnown } from '../../masking/masking.ts'
import {
  wireCookie,
  type WireCookie,
  type WireCookieSearchBody,
} from '../../upstream/resources/credentials.ts'
import { orders } from '../../upstream/resources/enumerations.ts'
import { parseTimestamp } from '../../upstream/timestamps.ts'
import type { Context } from '../context.ts'
import {
  addSinceOption,
  parseList,
  parseText,
  type PeriodOptions,
  resolvePeriod,
} from '../options.ts'
import { CommandError, sanitize } from '../terminal.ts'
import { callOptional, readSecret } from './api-command.ts'
import {
  formatRevealed,
  type Listing,
  mapTexts,
  maskAllSecrets,
  parseRows,
  shortTime,
} from './listing.ts'
import { listCommand, type ListOptions, type ListRequest } from './pages.ts'

interface CookiesOptions extends ListOptions, Pick<PeriodOptions, 'since'> {
  domain?: string
  value?: true
  names?: string[]
  paths?: string[]
  live?: true
  order: 'asc' | 'desc'
}

type Asked = Pick<WireCookieSearchBody, 'domain' | 'values' | 'names' | 'paths'>

export function cookiesCommand(context: Context): Command {
  const search = listCommand(context, {
    name: 'cookies search',
    description: 'stolen cookies of a domain (takes the permission for ASTP, costs no quota)',
    options: addOptions,
    pageSize: { usual: 100, most: 2_000 },
    reveal: true,
    ask: (options: CookiesOptions) => readAsked(context, options),
    scan: (asked, { since, live, order }) => ({ ...asked, since, live, order }),
    listing: ({ reveal }) => cookieListing(reveal === true),
    fetch: fetchCookies,
  })
  return new Command('cookies').addCommand(search)
}

function addOptions(command: Command): Command {
  command
    .option('--domain <fqdn>', 'of exactly this domain, without its subdomains', parseText)
    .option('--value', 'with exactly this value, which is asked for')
    .option('--names <names>', 'of these names, at most ten', parseList)
    .option('--paths <paths>', 'of these paths, at most ten', parseList)
    .option('--live', 'only what has not expired')
  return addSinceOption(command, 'imported').addOption(
    new Option('--order <order>', 'by import').choices(orders).default('desc'),
  )
}

async function readAsked(context: Context, options: CookiesOptions): Promise<Asked> {
  const { domain, value, names, paths } = options
  resolvePeriod(options, systemClock.now()) // said before a secret is asked for
  if (domain === undefined && !value) {
    throw new CommandError('mistake', 'say whose cookies, with --domain or --value')
  }
  return {
    ...(domain !== undefined && { domain: domain.toLowerCase() }),
    ...(value && { values: [await readSecret(context, 'value of the cookie')] }),
    ...(names && { names }),
    ...(paths && { paths }),
  }
}

const cookieSearch = {
  capability: 'astp_cookies',
  operation: 'the search for stolen cookies',
  permission: 'astp_cookies_access',
  instead: '"events expand --field cookies" shows those of one stealer log',
}

async function fetchCookies({
  context,
  client,
  callOptions,
  options,
  asked,
  position: { asOfMs, size, cursor },
}: ListRequest<CookiesOptions, Asked>): Promise<{
  rows: WireCookie[]
  next: string | null | undefined
}> {
  const { live, order, reveal } = options
  const { fromMs } = resolvePeriod(options, asOfMs)
  const body: WireCookieSearchBody = {
    ...asked,
    ...(fromMs !== undefined && { imported_after: new Date(fromMs).toISOString() }),
    ...(live && { expires_after: new Date(asOfMs).toISOString() }),
    size,
    order,
    ...(cursor !== null && { from: cursor }),
  }
  const request = client.searchCookies({ body, ...callOptions() })
  const { page } = await callOptional(client, cookieSearch, request)
  const rows = parseRows(context, wireCookie, page.items)
  return { rows: reveal ? rows : rows.map(maskCookie), next: page.next }
}

/** Of a value nothing remains; other fields may hold it, too. */
function maskCookie(cookie: WireCookie): WireCookie {
  const known = maskKnown(cookie.value ? [cookie.value] : [])
  const hidden = mapTexts(cookie, (text) => (parseTimestamp(text) === null ? known(text) : text))
  const shown = maskAllSecrets(hidden) as WireCookie
  return { ...shown, ...(cookie.value && { value: fullMask }) }
}

function cookieListing(reveal: boolean): Listing<WireCookie> {
  return {
    columns: [
      { title: 'IMPORTED (UTC)', width: 16, text: ({ imported_at }) => shortTime(imported_at) },
      { title: 'EXPIRES (UTC)', width: 16, text: ({ expires_at }) => shortTime(expires_at) || '–' },
      { title: 'DOMAIN', width: 30, text: ({ domain }) => domain ?? '' },
      { title: 'NAME', width: 24, text: ({ name }) => name ?? '' },
      { title: 'PATH', width: 16, text: ({ path }) => path ?? '' },
    ],
    below: ({ value, event_uid }) => [
      ...(reveal && value ? [`value: ${formatRevealed(value)}`] : []),
      ...(event_uid ? [`in ${sanitize(event_uid)}`] : []),
    ],
    json: (cookie) => cookie,
    csv: ['uuid', 'imported_at', 'expires_at', 'domain', 'name', 'path', 'value', 'event_uid'],
  }
}
