// Package emulator is an emulator of the Android Management API: the vendor's
// platform with simulated devices, for tests, for trying out and for developers
// without an account at the vendor.
//
// One HTTP address serves the vendor's API (/v1/…), Cloud Pub/Sub and Firebase
// Cloud Messaging below the same prefix, an OAuth token endpoint (/token), the
// sign-up page, and a control API (/emulator/v1/…) that enrolls devices, says how
// they behave, makes calls fail and lists the calls. docs/emulator.md is the
// guide; the methods of [Emulator] are the control API for Go.
//
// It is strict: routes, query parameters and schemas of requests come from the
// vendor's discovery documents, unknown names are refused with the vendor's error texts,
// and what is not emulated answers 501.
//
// # Simulated devices
//
// A device enrolls with a token, applies its policy, reports what the policy
// allows, carries out commands after its latency while it is online, and leaves
// when it is wiped. Timers and the clock of [Options] drive all devices from one
// heap, so thousands of devices are cheap and testing/synctest works.
//
// # Unverified against Google
//
// The emulator was not compared with Google, except for REBOOT on personally owned
// devices. Where the vendor's documents do not say what happens, the emulator does what
// is more likely, and a field of [Quirks] selects the other behavior:
//
//   - a policy patch that changes nothing does not raise the version
//     (NoOpPatchBumpsVersion);
//   - false and empty members are not answered (EchoDefaults);
//   - newPassword is not in a command's metadata (EchoNewPassword);
//   - a PIN of fewer than six digits is accepted, and lost mode right after a
//     password reset (PasswordRules);
//   - an expired command ends with error code 4 (ExpiredWithoutError);
//   - expired and canceled commands are notified (SilentExpiry, SilentCancel);
//   - a missing device is 404 (EntityNotFoundAs500);
//   - a missing policy in a token or a device patch is 400 (MissingPolicyAs404);
//   - the record of a device whose user left disappears (UserRemovalKeepsRecord);
//   - LOST is only in the appliedState of a device, not in its state (LostInState);
//   - factoryResetDisabled works (UnapprovedProject).
//
// Also unverified, without a switch: most error sentences, the names of enum
// types in them, the error beside a failed command's errorCode, the order of
// lists, and that lost mode and relinquishing succeed without effect on personally
// owned devices, as REBOOT does.
package emulator
