// Package emulator is an emulator of the Android Management API: the vendor's
// platform with simulated devices, for tests, for trying out and for developers
// without an account at the vendor.
//
// One HTTP address serves the vendor's API (/v1/…), Cloud Pub/Sub and Firebase
// Cloud Messaging below the same prefix, an OAuth token endpoint (/token), the
// sign-up page, and a control API (/emulator/v1/…) that enrolls devices, says how
// they behave, breaks calls and shows what was called. docs/emulator.md is the
// guide; the methods of [Emulator] are the control API for Go.
//
// It is strict: routes, query parameters and schemas of requests come from the
// vendor's discovery documents, unknown names are refused in the vendor's words,
// and what is not emulated answers 501.
//
// # Simulated devices
//
// A device enrolls with a token, applies its policy, reports what the policy
// allows, carries out commands after its latency while it is online, and leaves
// when it is wiped. Timers and the clock of [Options] drive all devices from one
// heap, so thousands are cheap and testing/synctest works.
//
// # Unverified against Google
//
// Nothing here was run against Google. Where the vendor's documents are silent,
// the emulator takes the likelier way and [Quirks] switches to the other:
//
//   - a policy patch that changes nothing does not raise the version
//     (NoOpPatchBumpsVersion);
//   - false and empty members are not answered (EchoDefaults);
//   - newPassword is not in a command's metadata (EchoNewPassword);
//   - an expired command ends with error code 4 (ExpiredWithoutError);
//   - expired and canceled commands are notified (SilentExpiry, SilentCancel);
//   - a missing device is 404 (EntityNotFoundAs500);
//   - a missing policy in a token or a device patch is 400 (MissingPolicyAs404);
//   - the record of a device whose user left disappears (UserRemovalKeepsRecord);
//   - factoryResetDisabled works (UnapprovedProject).
//
// Also unverified, without a switch: most error sentences, the names of enum
// types in them, the error beside a failed command's errorCode, the order of
// lists, and that lost mode, relinquishing and rebooting all succeed silently on
// personally owned devices (measured for rebooting only).
package emulator
