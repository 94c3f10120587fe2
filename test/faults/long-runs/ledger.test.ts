/** All cases of what `npm test` tries a few of: the ledger. */
import '../../integration/store/ledger-model.test.ts'
