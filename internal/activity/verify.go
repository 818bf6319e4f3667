package activity

// lacksProof reports whether an entry must have a proof and has none of the signer's.
func (h Head) lacksProof(e Entry, signer Signer) bool {
	return h.ProvedFrom > 0 && e.Seq >= h.ProvedFrom && !signer.Proves(e.Statement(), e.Proof)
}

// chainCheck follows a chain from a place on, entry by entry, to its head.
type chainCheck struct {
	verdict Verification
	from    int64  // the place of the first entry
	hash    string // of the entry before the next
	signer  Signer // nil: proofs cannot be checked
}

func newChainCheck(h Head, from int64, before string, signer Signer) *chainCheck {
	return &chainCheck{verdict: Verification{Head: h}, from: from, hash: before, signer: signer}
}

// fail notes the first thing that is wrong.
func (c *chainCheck) fail(place int64, why string) {
	if c.verdict.Sound() {
		c.verdict.Broken, c.verdict.Why = place, why
	}
}

// next checks the entry that follows.
func (c *chainCheck) next(e Entry) {
	v := &c.verdict
	if !v.Sound() {
		return
	}
	want := c.from + v.Checked
	switch {
	case e.Seq > v.Head.Last:
		c.fail(e.Seq, "an entry follows the signed head of the chain")
	case e.Seq != want:
		c.fail(want, "an entry is missing")
	case e.Digest(c.hash) != e.Hash:
		c.fail(e.Seq, "an entry is not what its hash says")
	case c.signer != nil && v.Head.lacksProof(e, c.signer):
		c.fail(e.Seq, "an entry has no proof: it was written without the service's key file")
	default:
		c.hash = e.Hash
		v.Checked++
	}
}

// end checks that the last entry was the head's.
func (c *chainCheck) end() {
	if last := c.from + c.verdict.Checked - 1; last != c.verdict.Head.Last {
		c.fail(last+1, "an entry is missing")
	} else if c.hash != c.verdict.Head.Hash {
		c.fail(last, "the head of the chain is not the last entry's")
	}
}
