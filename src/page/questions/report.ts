import { z } from 'zod'
import { addCounts, isForPeopleIn, reportJson } from '../../operator/reports/report.ts'
import { createReport, groupings } from '../../store/history/report.ts'
import { field, question, readPeriod } from '../question.ts'

export const reportQuestion = question({
  path: '/report',
  summary: 'what came in, what was told to whom and how soon, of whole days in UTC',
  query: z.object({
    account: field.account,
    since: field.since,
    until: field.until,
    by: z.enum(groupings).default('day').describe('A row for each.'),
  }),
  async ask(asker, { by, ...asked }) {
    const { config, ledgers, labels, nowMs } = asker
    const period = readPeriod(asked, asker)
    const report = createReport({ by, isForPeople: isForPeopleIn(config) })
    await addCounts(report, ledgers, { by: 'day', ...period })
    return reportJson(report, { by, labels, nowMs, ...period })
  },
})
