package policy

// Copy is the platform's copy of a policy, compared with a document of ours.
type Copy struct {
	Exists  bool
	Same    bool  // it means the same as the document
	Version int64 // what the platform calls it
}

// Turn is the name of the lease that whoever sends a policy's document to the
// platform holds while he sends and until the outcome is saved: documents of
// one policy then reach the platform in the order of their versions.
func Turn(policyID string) string { return "platform/policy/" + policyID }
