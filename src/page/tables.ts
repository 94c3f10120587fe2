/** Every question and every act: of the API, of its description, and of the page. */
import type { ActRow } from './act.ts'
import {
  flushSink,
  pauseFeedAct,
  pauseSinkAct,
  resumeFeedAct,
  resumeSinkAct,
  testSink,
} from './acts/flow.ts'
import { discardItems, resendItems } from './acts/items.ts'
import { reloadConfig } from './acts/reload.ts'
import { noteEvent, triageEvent } from './acts/service.ts'
import { addSilence, expireSilence } from './acts/silences.ts'
import type { Question } from './question.ts'
import { eventQuestion } from './questions/event.ts'
import { messageQuestion } from './questions/message.ts'
import { itemsQuestion } from './questions/not-told.ts'
import { rulesQuestion } from './questions/rules.ts'
import { searchQuestion } from './questions/search.ts'
import { messagesQuestion } from './questions/told.ts'
import { reportQuestion } from './questions/report.ts'
import {
  accountsQuestion,
  feedsQuestion,
  silencesQuestion,
  sinksQuestion,
  statusQuestion,
} from './questions/state.ts'
import { tenantsQuestion } from './questions/tenants.ts'

export const questions = [
  statusQuestion,
  reportQuestion,
  messagesQuestion,
  messageQuestion,
  itemsQuestion,
  searchQuestion,
  eventQuestion,
  rulesQuestion,
  feedsQuestion,
  sinksQuestion,
  accountsQuestion,
  silencesQuestion,
  tenantsQuestion,
] as unknown as readonly Question[]

export const acts = [
  resendItems,
  discardItems,
  testSink,
  pauseSinkAct,
  resumeSinkAct,
  flushSink,
  pauseFeedAct,
  resumeFeedAct,
  addSilence,
  expireSilence,
  triageEvent,
  noteEvent,
  reloadConfig,
] as unknown as readonly ActRow[]
