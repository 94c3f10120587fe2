/** All cases of what `npm test` tries a few of: feeds. */
import '../../integration/feeds/dates-do-not-lead.test.ts'
import '../../integration/feeds/every-item-exactly-once.test.ts'
import '../../unit/feeds/late-arrivals.test.ts'
