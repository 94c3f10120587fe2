import { renderMessage } from '../../messages/message.ts'
import { renderSummary } from '../../messages/summary-message.ts'
import type { Delivery } from '../sink.ts'
import { soleMember } from '../sole-member.ts'
import { renderPlainSlack, renderSlack, type SlackMessage } from './slack-message.ts'
import { renderPlainSlackSummary, renderSlackSummary } from './slack-summary.ts'

/** What Slack is sent of a delivery, and what it is sent instead should it refuse the blocks. */
export interface SlackPreview {
  inBlocks: SlackMessage
  inWords: SlackMessage
}

/** Throws SinkError `invalid` for several events without a summary. An incoming webhook takes no files. */
export function previewSlack(delivery: Delivery): SlackPreview {
  const { id, summary } = delivery
  if (summary !== undefined) {
    const message = renderSummary({ ...delivery, summary, attachment: undefined })
    return {
      inBlocks: renderSlackSummary(message, id),
      inWords: renderPlainSlackSummary(message, id),
    }
  }
  const message = renderMessage(soleMember(delivery), delivery)
  return { inBlocks: renderSlack(message, id), inWords: renderPlainSlack(message, id) }
}
