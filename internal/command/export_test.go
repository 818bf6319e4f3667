package command

// MoveTo is the body of CHANGE_POLICY before its policy is found.
func MoveTo(policyID string) any { return policyRef(policyID) }
