package policy

// Copy is the platform's copy of a policy, compared with a document of ours.
type Copy struct {
	Exists  bool
	Same    bool  // it means the same as the document
	Version int64 // what the platform calls it
}

// LeaseKey is the name of the lease under which a policy's document is sent to the
// platform and the outcome is saved. It makes documents of one policy reach the
// platform in the order of their versions.
func LeaseKey(policyID string) string { return "platform/policy/" + policyID }
