/** All cases of what `npm test` tries a few of: the ledger. */
import '../../integration/store/conservation.test.ts'
import '../../integration/grouping/group-conservation.test.ts'
