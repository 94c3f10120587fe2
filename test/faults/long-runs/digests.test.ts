/** All cases of what `npm test` tries a few of: a whole year of digests. */
import '../../integration/grouping/a-year-of-digests.test.ts'
