import type { ExpandField } from '../../../service/wire/enumerations.ts'
import type { Column, Listing } from '../listing.ts'
import { revealed } from '../revealed.ts'
import { shortTime } from '../short-time.ts'

export type ExpandedRow = Record<string, unknown>

/** What a stealer log holds; a revealed secret has a line of its own, where it is whole. */
export function expandListing(field: ExpandField, reveal: boolean): Listing<ExpandedRow> {
  const { columns, secret, csv } = listings[field]
  return {
    columns: reveal ? columns.filter(({ key }) => key !== secret) : columns,
    below: (row) => {
      const clear = textIn(row, secret)
      return reveal && clear !== '' ? [`${secret}: ${revealed(clear)}`] : []
    },
    json: (row) => row,
    csv,
  }
}

interface KeyColumn extends Column<ExpandedRow> {
  key: string
}

const listings: Readonly<
  Record<ExpandField, { columns: KeyColumn[]; secret: string; csv: string[] }>
> = {
  credentials: {
    columns: [
      textColumn('username', 'USER NAME', 32),
      textColumn('password', 'PASSWORD', 20),
      textColumn('application', 'APPLICATION', 20),
      textColumn('url', 'URL', 60),
    ],
    secret: 'password',
    csv: ['url', 'username', 'password', 'application'],
  },
  cookies: {
    columns: [
      textColumn('host_key', 'HOST', 32),
      textColumn('path', 'PATH', 12),
      textColumn('name', 'NAME', 24),
      {
        ...textColumn('expires_utc', 'EXPIRES (UTC)', 16),
        text: (row) => shortTime(textIn(row, 'expires_utc')),
      },
      textColumn('value', 'VALUE', 60),
    ],
    secret: 'value',
    csv: ['host_key', 'path', 'expires_utc', 'name', 'value'],
  },
}

function textColumn(key: string, title: string, width: number): KeyColumn {
  return { key, title, width, text: (row) => textIn(row, key) }
}

function textIn(row: ExpandedRow, key: string): string {
  const value = row[key]
  return typeof value === 'string' ? value : ''
}
