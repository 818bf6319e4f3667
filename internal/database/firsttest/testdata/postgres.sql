


SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;


INSERT INTO public.activity VALUES
	('pr6v0w5hram92qfz4evw1wrccr', 1795340250067, 'cp0vftrxrq35t7f59w269swpyr', 'SYSTEM', 'operator', '', 'command line', '', 'company', 'company.created', 'COMPANY', 'pr6v0w5hram92qfz4evw1wrccr', 'Other', 'OK', '', '[{"field":"name","before":"","after":"Other"},{"field":"inactiveAfter","before":"","after":"30 days"},{"field":"keepActivity","before":"","after":"400 days"}]', '', '', '', 1, 'bc0bb9165ff2d2c73295c0cbb7faf3340f0396a1eb1bb7c9b953e4f56ac2204c'),
	('w0d0fh582ka09ghscxbf0a73d0', 1795340249926, '3wyf4b0eqaj66nbbgmmf2jydf4', 'SYSTEM', 'operator', '', 'command line', '', 'company', 'company.created', 'COMPANY', 'w0d0fh582ka09ghscxbf0a73d0', 'Acme', 'OK', '', '[{"field":"name","before":"","after":"Acme"},{"field":"inactiveAfter","before":"","after":"30 days"},{"field":"keepActivity","before":"","after":"400 days"},{"field":"deviceCommands","before":"off","after":"on"},{"field":"destructiveCommands","before":"off","after":"on"},{"field":"policyChanges","before":"off","after":"on"},{"field":"provisioning","before":"off","after":"on"},{"field":"oauthConnections","before":"off","after":"on"}]', '', '', '', 1, '288d6f2765bf735d9dfdd9a4f3b409ef34586b639960d84d856da30d9154e8de'),
	('w0d0fh582ka09ghscxbf0a73d0', 1795340250150, 'thpqyyaj02j7w32fr02s85crkg', 'SYSTEM', 'operator', '', 'command line', '', 'company', 'company.connected', 'COMPANY', 'w0d0fh582ka09ghscxbf0a73d0', 'Acme', 'OK', '', '[{"field":"enterprise","before":"","after":"enterprises/LCxuh0a6986"}]', '', '', '', 2, 'd4570e15bd606c81b078af30521b5c71487ee958d8c8a9aa41878b5d0a03a82e'),
	('w0d0fh582ka09ghscxbf0a73d0', 1795340250288, '075kjvzrka4h21yp2jp52t2fg0', 'SYSTEM', 'operator', '', 'command line', '', 'user', 'user.created', 'USER', 'acm6k4bb7a3fr4d96ndev10drw', 'admin@acme.test', 'OK', '', '[{"field":"email","before":"","after":"admin@acme.test"},{"field":"name","before":"","after":"admin@acme.test"},{"field":"role","before":"","after":"admin"},{"field":"rights","before":"","after":"view-devices command-devices destroy-devices view-policies edit-policies provision-devices manage-keys manage-users manage-company view-activity"},{"field":"policies","before":"","after":"all"},{"field":"password","before":"","after":"set anew"}]', '', '', '', 3, '1cd712cd5ac194615c760ed5e8f61ea094ffe13f8e706e2898b9aa6256fb7b82'),
	('w0d0fh582ka09ghscxbf0a73d0', 1795340250401, 'nxhjh7cgrs988003nty4tnr9wm', 'SYSTEM', 'operator', '', 'command line', '', 'policy', 'policy.created', 'POLICY', 'vjj9mr080vvmxev6gt1t3d9914', 'Warehouse', 'OK', '', '[{"field":"version","before":"","after":"1"},{"field":"origin","before":"","after":"CREATE"}]', '', '', '', 4, 'bf0c238d354618476383c2b67642f4079acc6a403ecd4117cb348127fffd7b0e'),
	('w0d0fh582ka09ghscxbf0a73d0', 1795340250583, '9pehfwtbnsamg90eky6ma73qy8', 'SYSTEM', 'operator', '', 'command line', '', 'policy', 'policy.created', 'POLICY', 'wzzktq6qyz1cwy68pbhxmrkttm', 'Kiosk', 'OK', '', '[{"field":"version","before":"","after":"1"},{"field":"origin","before":"","after":"CREATE"}]', '', '', '', 5, '75d0905987a6bc636904b8ee938d305f8018e712201408f89ec4d92cae4ce74b'),
	('w0d0fh582ka09ghscxbf0a73d0', 1795340250661, 'extxd8mn2wddh8fnnevpv6kc9g', 'SYSTEM', 'operator', '', 'command line', '', 'policy', 'policy.created', 'POLICY', '3zt4xj2y011p3fv1f21sssy46g', 'Headsets', 'OK', '', '[{"field":"version","before":"","after":"1"},{"field":"origin","before":"","after":"CREATE"}]', '', '', '', 6, 'bab289acd67ad4e47dd203e363c0ef7445afb190067f96f185af8b1284bcc114'),
	('w0d0fh582ka09ghscxbf0a73d0', 1795340250806, 'gj03559gz6mndg82bvsesk276c', 'SYSTEM', 'operator', '', 'command line', '', 'policy', 'policy.saved', 'POLICY', 'vjj9mr080vvmxev6gt1t3d9914', 'Warehouse', 'OK', '', '[{"field":"version","before":"","after":"2"},{"field":"origin","before":"","after":"PORTAL"}]', '', '', '', 7, 'e0864c0ef27253a565ddedcecd5b369116499dd73323ebcb196012329c0776a3'),
	('w0d0fh582ka09ghscxbf0a73d0', 1795340250900, '3505xd92gr2160p8hhc7vb5tk4', 'SYSTEM', 'operator', '', 'command line', '', 'key', 'key.created', 'KEY', 'hcfd5248441raxxvgwnqnbn2d8', 'codes', 'OK', '', '[{"field":"permissions","before":"","after":"DEVICES_READ, DEVICES_COMMAND, DEVICES_COMMAND_DESTRUCTIVE, POLICIES_READ, POLICIES_WRITE, PROVISIONING"},{"field":"prefix","before":"","after":"9y6FjK7F"}]', '', '', '', 8, 'fc9c1378647df549b968468e52cdd58a753fd4e999aae086abd2c8c7cba133c0'),
	('w0d0fh582ka09ghscxbf0a73d0', 1795340250975, 'h9qg15pw9m4p4nj370vpmdjb2c', 'SYSTEM', 'operator', '', 'command line', '', 'asset', 'asset.imported', '', '', '', 'OK', '', '[{"field":"assets","before":"","after":"2"}]', '', '', '', 9, 'cf77dd79ebd48a9e51ad866d055836bfec6dfaaa87035a3b0d1836fd1e3f4660'),
	('w0d0fh582ka09ghscxbf0a73d0', 1795340251247, '056p2djeyc1kz82v28k64b0vtw', 'API_KEY', 'hcfd5248441raxxvgwnqnbn2d8', '', 'codes', '9y6FjK7F', 'provisioning', 'provisioning.issued', 'POLICY', 'vjj9mr080vvmxev6gt1t3d9914', 'Warehouse', 'OK', '', '[{"field":"personalUsage","before":"","after":"UNSPECIFIED"}]', '69bt33dwx04yxxz4w7rj5kyg6g', '127.0.0.1', 'curl/7.88.1', 10, '93ae6d16f655d0eb303a0772d5f8d4dd13acff24cfd77f0d4199b8ed40325db4'),
	('w0d0fh582ka09ghscxbf0a73d0', 1795340251700, 'efdec5m8s3ydvsqkm3feacgws4', 'SYSTEM', 'operator', '', 'command line', '', 'key', 'key.created', 'KEY', 'cg8aqa19tk5bn9pvw0s5e7pt58', 'first', 'OK', '', '[{"field":"permissions","before":"","after":"DEVICES_READ, DEVICES_COMMAND, DEVICES_COMMAND_DESTRUCTIVE, POLICIES_READ, POLICIES_WRITE, PROVISIONING"},{"field":"prefix","before":"","after":"g4VETyR8"}]', '', '', '', 11, '0c0d66fa53c9199ee63b9c02347f5a34e77fe8221245f4a5320e5eb56d948519'),
	('w0d0fh582ka09ghscxbf0a73d0', 1795340253810, '1vtyxwsjyt9k6pp7fby7090pw8', 'SYSTEM', 'operator', '', 'command line', '', 'key', 'key.created', 'KEY', '6w0naqanz5jjx902n9jnq7sswg', 'second', 'OK', '', '[{"field":"permissions","before":"","after":"DEVICES_READ, DEVICES_COMMAND, DEVICES_COMMAND_DESTRUCTIVE, POLICIES_READ, POLICIES_WRITE, PROVISIONING"},{"field":"prefix","before":"","after":"vPpUYSWX"}]', '', '', '', 12, 'e27e7f4eb85c98d36e99f956751b258eefa17309ec3ef1262380ed2775ac3802'),
	('w0d0fh582ka09ghscxbf0a73d0', 1795340253828, 'v3vdf4225mgkx9wzk75bzjw0p0', 'API_KEY', '6w0naqanz5jjx902n9jnq7sswg', '', 'second', 'vPpUYSWX', 'command', 'command.lock', 'ASSET', 'e3mxvwwyhcgp9b08bw00vyj2h0', '', 'OK', 'bqgc90vz3sjspnqvxbjj06rajg', '', 'abj85x2f3msm9yc897hwq0mvkw', '127.0.0.1', 'curl/7.88.1', 13, 'fb4eab1ddcb13832f1057846a46c3539837008bac25a150731a1d5b6fd728e6f'),
	('w0d0fh582ka09ghscxbf0a73d0', 1795340253866, 'gpxtj9n02cx95sfn0s5m8nw640', 'API_KEY', '6w0naqanz5jjx902n9jnq7sswg', '', 'second', 'vPpUYSWX', 'command', 'command.status_report', 'ASSET', 'e3mxvwwyhcgp9b08bw00vyj2h0', '', 'OK', 'ht5p3gzka0nt97tmn088n035qr', '', 'cjdh5zzd354ed1q7nzyzrn7qz8', '127.0.0.1', 'curl/7.88.1', 14, '7702dad716b62fdbefdecf1cafea27faecc3050c84ef30b208c3b72438db95dd'),
	('w0d0fh582ka09ghscxbf0a73d0', 1795340253934, 'qhxhndshvys04j49g3q8sgthdr', 'SYSTEM', 'operator', '', 'command line', '', 'key', 'key.created', 'KEY', '30ddahj20sq7jjtc3ddzcbctq8', 'ci', 'OK', '', '[{"field":"permissions","before":"","after":"DEVICES_READ, DEVICES_COMMAND, DEVICES_COMMAND_DESTRUCTIVE, POLICIES_READ, POLICIES_WRITE, PROVISIONING"},{"field":"prefix","before":"","after":"1c10Zmc8"}]', '', '', '', 15, 'dad733c72b7a5a7404b4a3c184dff7c4a99d8c131e8b1ed234cc65dc29e0009f'),
	('w0d0fh582ka09ghscxbf0a73d0', 1795340253957, 'hxv14z5gxa6a4c4ywv8takb90g', 'API_KEY', '30ddahj20sq7jjtc3ddzcbctq8', '', 'ci', '1c10Zmc8', 'proposal', 'proposal.made', 'POLICY', 'vjj9mr080vvmxev6gt1t3d9914', 'Warehouse', 'OK', 'prp_aaa3a4rxd64x9b4w2c2mje4c14', '[{"field":"SMS","before":"NOT_SET","after":"BLOCK"}]', 'fdcr7zk95xsbte8tba2pw5m9v4', '127.0.0.1', 'curl/7.88.1', 16, '8081773d15022469ad261a727f1847fac3a41d73ec0540211379e62e31c75707'),
	('w0d0fh582ka09ghscxbf0a73d0', 1795340254026, 'ht8p9n3ntpebp4p048hv2fwb6c', 'USER', 'acm6k4bb7a3fr4d96ndev10drw', 'acm6k4bb7a3fr4d96ndev10drw', 'admin@acme.test', '', 'signin', 'signin.opened', 'USER', 'acm6k4bb7a3fr4d96ndev10drw', 'admin@acme.test', 'OK', '', '[{"field":"method","before":"","after":"password"}]', '', '127.0.0.1', 'curl/7.88.1', 17, 'b64499bb80b19d2ea386757822aacd9f5d8423694c6cd96070802d502ef942c1'),
	('w0d0fh582ka09ghscxbf0a73d0', 1795340254101, 'pvcq1167a6m4e2zfm290b1v3e0', 'USER', 'acm6k4bb7a3fr4d96ndev10drw', 'acm6k4bb7a3fr4d96ndev10drw', 'admin@acme.test', '', 'connection', 'connection.granted', 'CONNECTION', 'xbg787414ghtr3t9c6gqvsng6r', 'Test', 'OK', '', '[{"field":"scopes","before":"","after":"mcp:devices:read"}]', '', '127.0.0.1', 'curl/7.88.1', 18, '08c4d91ce6f6ef36c64a55837197ea214747ce70c4056488f2d456c355fbff46');



INSERT INTO public.activity_heads VALUES
	('pr6v0w5hram92qfz4evw1wrccr', 1, '', 1, 'bc0bb9165ff2d2c73295c0cbb7faf3340f0396a1eb1bb7c9b953e4f56ac2204c', '57f64dffdeff1740fdabbc5a8cd530c80587f0a24afa3516094237cc36f5cdc289f5c6e94d8bdf14bd77037e3c255170c1260d399eb3ab2be66329300b0d8203'),
	('w0d0fh582ka09ghscxbf0a73d0', 1, '', 18, '08c4d91ce6f6ef36c64a55837197ea214747ce70c4056488f2d456c355fbff46', '1d866abcd9e2e8003f02a2bc9a77db2f4f942d54f550c9417b373f924cb1cd58e0d697827712dbbcd1c76bf02fc773616319cd9b9bcef04ee44131c3fd2e8904');












INSERT INTO public.api_keys VALUES
	('hcfd5248441raxxvgwnqnbn2d8', '9y6FjK7F', 'w0d0fh582ka09ghscxbf0a73d0', 'codes', 'c5019123d4212d5fb8bbd3af3a210fb12d9e205fed0912f7f80c7b6cbb1a747e', 63, 'operator', 1795340250895, 0, 0, 1795340251481, 'null'),
	('cg8aqa19tk5bn9pvw0s5e7pt58', 'g4VETyR8', 'w0d0fh582ka09ghscxbf0a73d0', 'first', '5f06977b260dfc2df3ccfc629ece9075d3270cfd32184e6db6a8a5d62ac9c396', 63, 'operator', 1795340251698, 0, 0, 1795340251732, 'null'),
	('6w0naqanz5jjx902n9jnq7sswg', 'vPpUYSWX', 'w0d0fh582ka09ghscxbf0a73d0', 'second', '257d6afb1b3ef080f85615f76d8e0990c709d99428e7beb7c9cc075422022595', 63, 'operator', 1795340253809, 0, 0, 1795340253865, 'null'),
	('30ddahj20sq7jjtc3ddzcbctq8', '1c10Zmc8', 'w0d0fh582ka09ghscxbf0a73d0', 'ci', '607fe1742c9e9b77452d0c351afadfecf2e8658cd5ba432669653d47653cc2fe', 63, 'operator', 1795340253933, 0, 0, 1795340258800, 'null');



INSERT INTO public.asset_apps VALUES
	('e3mxvwwyhcgp9b08bw00vyj2h0', 1795340251381, '[{"package":"com.example.app","name":"com.example.app","version":"1.0.0","source":"INSTALLED_FROM_PLAY_STORE"}]');



INSERT INTO public.asset_counts VALUES
	('w0d0fh582ka09ghscxbf0a73d0', 'PENDING', '', 2),
	('w0d0fh582ka09ghscxbf0a73d0', 'ACTIVE', 'vjj9mr080vvmxev6gt1t3d9914', 1),
	('w0d0fh582ka09ghscxbf0a73d0', 'SYNCHRONIZING', 'vjj9mr080vvmxev6gt1t3d9914', 0);






INSERT INTO public.asset_terms VALUES
	('w0d0fh582ka09ghscxbf0a73d0', '#blue', 'da1rssef9hrpaer8tr8b47jeym'),
	('w0d0fh582ka09ghscxbf0a73d0', '#spare', 'da1rssef9hrpaer8tr8b47jeym'),
	('w0d0fh582ka09ghscxbf0a73d0', '1', 'da1rssef9hrpaer8tr8b47jeym'),
	('w0d0fh582ka09ghscxbf0a73d0', '2', '4z6dqx44arqf82cs69fv3bkny4'),
	('w0d0fh582ka09ghscxbf0a73d0', '3', '4z6dqx44arqf82cs69fv3bkny4'),
	('w0d0fh582ka09ghscxbf0a73d0', '8', 'da1rssef9hrpaer8tr8b47jeym'),
	('w0d0fh582ka09ghscxbf0a73d0', 'blue', 'da1rssef9hrpaer8tr8b47jeym'),
	('w0d0fh582ka09ghscxbf0a73d0', 'google', 'da1rssef9hrpaer8tr8b47jeym'),
	('w0d0fh582ka09ghscxbf0a73d0', 'meta', '4z6dqx44arqf82cs69fv3bkny4'),
	('w0d0fh582ka09ghscxbf0a73d0', 'oculus', '4z6dqx44arqf82cs69fv3bkny4'),
	('w0d0fh582ka09ghscxbf0a73d0', 'pixel', 'da1rssef9hrpaer8tr8b47jeym'),
	('w0d0fh582ka09ghscxbf0a73d0', 'quest', '4z6dqx44arqf82cs69fv3bkny4'),
	('w0d0fh582ka09ghscxbf0a73d0', 'sp-1', 'da1rssef9hrpaer8tr8b47jeym'),
	('w0d0fh582ka09ghscxbf0a73d0', 'sp-2', '4z6dqx44arqf82cs69fv3bkny4'),
	('w0d0fh582ka09ghscxbf0a73d0', 'spare', '4z6dqx44arqf82cs69fv3bkny4'),
	('w0d0fh582ka09ghscxbf0a73d0', 'spare', 'da1rssef9hrpaer8tr8b47jeym'),
	('w0d0fh582ka09ghscxbf0a73d0', '92k8', 'e3mxvwwyhcgp9b08bw00vyj2h0'),
	('w0d0fh582ka09ghscxbf0a73d0', '9d94992a512987c4', 'e3mxvwwyhcgp9b08bw00vyj2h0'),
	('w0d0fh582ka09ghscxbf0a73d0', '@platform', 'e3mxvwwyhcgp9b08bw00vyj2h0'),
	('w0d0fh582ka09ghscxbf0a73d0', 'g736b', 'e3mxvwwyhcgp9b08bw00vyj2h0'),
	('w0d0fh582ka09ghscxbf0a73d0', 'samsung', 'e3mxvwwyhcgp9b08bw00vyj2h0'),
	('w0d0fh582ka09ghscxbf0a73d0', 'sm-g736b', 'e3mxvwwyhcgp9b08bw00vyj2h0'),
	('w0d0fh582ka09ghscxbf0a73d0', 'wcrhygc92k8', 'e3mxvwwyhcgp9b08bw00vyj2h0');



INSERT INTO public.assets VALUES
	('da1rssef9hrpaer8tr8b47jeym', 'w0d0fh582ka09ghscxbf0a73d0', 'PENDING', '', 'Spare 1', 0, 1795340250970, true, 'sp-1', 'google', '', 0, '', '', '', '', '', 0, 0, 0, false, false, 0, '{"Room":"B12"}', '["spare","blue"]', '{"brand":"google","manufacturer":"Google","model":"Pixel 8","serialNumber":"SP-1"}', '', '', '
sp-1
1
spare
#spare
#blue
blue
pixel
8
google
'),
	('4z6dqx44arqf82cs69fv3bkny4', 'w0d0fh582ka09ghscxbf0a73d0', 'PENDING', '', 'Spare 2', 0, 1795340250970, true, 'sp-2', 'oculus', '', 0, '', '', '', '', '', 0, 0, 0, false, false, 0, '', '', '{"brand":"oculus","manufacturer":"Meta","model":"Quest 3","serialNumber":"SP-2"}', '', '', '
sp-2
2
spare
quest
3
meta
oculus
'),
	('e3mxvwwyhcgp9b08bw00vyj2h0', 'w0d0fh582ka09ghscxbf0a73d0', 'ACTIVE', 'vjj9mr080vvmxev6gt1t3d9914', 'SM-G736B 92K8', 1795340251381, 1795340251395, false, 'wcrhygc92k8', 'samsung', '', 1, 'PLATFORM', 'COMPANY_OWNED', 'DEVICE_OWNER', 'enterprises/LCxuh0a6986/devices/9d94992a512987c4', 'vjj9mr080vvmxev6gt1t3d9914', 2, 1795340251381, 1795340251381, false, false, 34, '', '', '{"androidBuildNumber":"EMU34.261001.001","androidDevicePolicyVersionName":"117.23.0","apiLevel":"34","bootloaderVersion":"emulator-1.0","brand":"samsung","deviceKernelVersion":"6.1.75-android14","hardware":"qcom","imei":"353544804815496","manufacturer":"samsung","model":"SM-G736B","osVersion":"14","primaryLanguageCode":"en-US","securityPatchLevel":"2026-10-01","serialNumber":"WCRHYGC92K8","wifiMacAddress":"02:71:6c:7d:f6:36"}', '', '{"appliedState":"ACTIVE","batteryLevel":72,"deviceSettings":{"encryptionStatus":"ACTIVE_PER_USER","isDeviceSecure":true,"isEncrypted":true,"verifyAppsEnabled":true},"displays":[{"density":450,"height":2408,"name":"Built-in Screen","refreshRate":60,"state":"ON","width":1080}],"hardwareStatus":{"batteryTemperatures":[29.5],"cpuTemperatures":[38.1],"createTime":"2026-11-22T09:37:31.381Z","skinTemperatures":[30.2]},"installedAppCount":1,"memoryInfo":{"totalInternalStorage":"137438953472","totalRam":"6442450944"},"policyCompliant":true,"reportedAt":"2026-11-22T09:37:31.381Z","securityPosture":"SECURE","state":"ACTIVE","systemUpdateInfo":{"updateStatus":"UP_TO_DATE"}}', '
@platform
wcrhygc92k8
9d94992a512987c4
sm-g736b
g736b
92k8
samsung
');



INSERT INTO public.budgets VALUES
	('API_KEY:hcfd5248441raxxvgwnqnbn2d8', 1, 1795340311215),
	('API_KEY:cg8aqa19tk5bn9pvw0s5e7pt58', 1, 1795340311732),
	('API_KEY:6w0naqanz5jjx902n9jnq7sswg', 3, 1795340313827),
	('API_KEY:30ddahj20sq7jjtc3ddzcbctq8', 1, 1795340313955),
	('signin-client:127.0.0.1', 1, 1795340313980),
	('signin-email:admin@acme.test', 1, 1795340313980),
	('register:127.0.0.1', 1, 1795343854052),
	('token:mc_fvnqr92c4jh5eqjwwdpqcvn9zm:127.0.0.1', 1, 1795343854126);









INSERT INTO public.commands VALUES
	('ht5p3gzka0nt97tmn088n035qr', 'w0d0fh582ka09ghscxbf0a73d0', 'e3mxvwwyhcgp9b08bw00vyj2h0', 1, 'STATUS_REPORT', 'SUCCESS', 1795340253866, 0, 'the asset shows the device''s last report, of 2026-11-22T09:37:31Z; the platform cannot be asked for a new one', 'API_KEY', '6w0naqanz5jjx902n9jnq7sswg', 'vPpUYSWX', 'second', '', 1795426653866, '', '', 'rre4nydtt4150f00n3gqc3jdh4'),
	('bqgc90vz3sjspnqvxbjj06rajg', 'w0d0fh582ka09ghscxbf0a73d0', 'e3mxvwwyhcgp9b08bw00vyj2h0', 1, 'LOCK', 'SUCCESS', 1795340253828, 1795340254031, 'the device locked its screen', 'API_KEY', '6w0naqanz5jjx902n9jnq7sswg', 'vPpUYSWX', 'second', 'enterprises/LCxuh0a6986/devices/9d94992a512987c4/operations/1795340253830', 1795945053828, '', '', 'rre4nydtt4150f00n3gqc3jdh4');



INSERT INTO public.companies VALUES
	('pr6v0w5hram92qfz4evw1wrccr', 'other', 'Other', false, false, false, false, false, 2592000000, '', 1795340250002, 34560000000),
	('w0d0fh582ka09ghscxbf0a73d0', 'acme', 'Acme', true, true, true, true, true, 2592000000, 'enterprises/LCxuh0a6986', 1795340249873, 34560000000);






INSERT INTO public.device_names VALUES
	('w0d0fh582ka09ghscxbf0a73d0', 'enterprises/LCxuh0a6986/devices/9d94992a512987c4', 'e3mxvwwyhcgp9b08bw00vyj2h0', 1795340253000, false);



INSERT INTO public.gate_switches VALUES
	('w0d0fh582ka09ghscxbf0a73d0', 'deviceCommands', true, 1795340249922, 'SYSTEM', 'operator', 'command line'),
	('w0d0fh582ka09ghscxbf0a73d0', 'destructiveCommands', true, 1795340249925, 'SYSTEM', 'operator', 'command line'),
	('w0d0fh582ka09ghscxbf0a73d0', 'policyChanges', true, 1795340249925, 'SYSTEM', 'operator', 'command line'),
	('w0d0fh582ka09ghscxbf0a73d0', 'provisioning', true, 1795340249926, 'SYSTEM', 'operator', 'command line'),
	('w0d0fh582ka09ghscxbf0a73d0', 'oauthConnections', true, 1795340249926, 'SYSTEM', 'operator', 'command line');



INSERT INTO public.goose_db_version VALUES
	(1, 0, true, '2026-11-22 09:37:29.208778'),
	(2, 1, true, '2026-11-22 09:37:29.227731'),
	(3, 2, true, '2026-11-22 09:37:29.301611'),
	(4, 3, true, '2026-11-22 09:37:29.303716'),
	(5, 10, true, '2026-11-22 09:37:29.309245'),
	(6, 20, true, '2026-11-22 09:37:29.335217'),
	(7, 30, true, '2026-11-22 09:37:29.351869'),
	(8, 31, true, '2026-11-22 09:37:29.368932'),
	(9, 33, true, '2026-11-22 09:37:29.370098'),
	(10, 35, true, '2026-11-22 09:37:29.376621'),
	(11, 40, true, '2026-11-22 09:37:29.378848'),
	(12, 41, true, '2026-11-22 09:37:29.394634'),
	(13, 45, true, '2026-11-22 09:37:29.418619'),
	(14, 50, true, '2026-11-22 09:37:29.426001'),
	(15, 60, true, '2026-11-22 09:37:29.438978'),
	(16, 70, true, '2026-11-22 09:37:29.460932'),
	(17, 80, true, '2026-11-22 09:37:29.463612'),
	(18, 81, true, '2026-11-22 09:37:29.468265'),
	(19, 82, true, '2026-11-22 09:37:29.476119'),
	(20, 84, true, '2026-11-22 09:37:29.479104');












INSERT INTO public.leases VALUES
	('replica/rre4nydtt4150f00n3gqc3jdh4', 'rre4nydtt4150f00n3gqc3jdh4', 1795340265649);



INSERT INTO public.messages VALUES
	('w0d0fh582ka09ghscxbf0a73d0', '0000010000000002', 1795340251386),
	('w0d0fh582ka09ghscxbf0a73d0', '0000010000000003', 1795340251424);



INSERT INTO public.oauth_clients VALUES
	('mc_fvnqr92c4jh5eqjwwdpqcvn9zm', 'Test', '["https://app.example.com/cb"]', true, '', 1795340254053, 0);



INSERT INTO public.oauth_codes VALUES
	('3652c6fe958c7cf5edcfc88c6c088292a18171259ed96129a6ba914fd210f76a', 'xbg787414ghtr3t9c6gqvsng6r', 'mc_fvnqr92c4jh5eqjwwdpqcvn9zm', 'https://app.example.com/cb', 'DksyTyvjKJMTgEpPXzLiaCJ1P325hYFdr6STK5uo-WM', 'http://127.0.0.1:28490/mcp', 1795340314098, true);



INSERT INTO public.oauth_connections VALUES
	('xbg787414ghtr3t9c6gqvsng6r', 'w0d0fh582ka09ghscxbf0a73d0', 'acm6k4bb7a3fr4d96ndev10drw', 'mc_fvnqr92c4jh5eqjwwdpqcvn9zm', 'Test', 1, false, 1795340254098, 0, 0);



INSERT INTO public.oauth_tokens VALUES
	('b41a9f9b7659a7890ccf15478b1ef67ad712f07280497635a8128f3ae58d803b', 'xbg787414ghtr3t9c6gqvsng6r', false, 1795341154126, false),
	('b812e05154589de5cf942c7c3729b4bdae0773314aebe23c0cf5b2114a2937db', 'xbg787414ghtr3t9c6gqvsng6r', true, 1797932254126, false);






INSERT INTO public.patch_counts VALUES
	('w0d0fh582ka09ghscxbf0a73d0', 'vjj9mr080vvmxev6gt1t3d9914', '', 0),
	('w0d0fh582ka09ghscxbf0a73d0', 'vjj9mr080vvmxev6gt1t3d9914', '2026-10', 1);






INSERT INTO public.policies VALUES
	('wzzktq6qyz1cwy68pbhxmrkttm', 'w0d0fh582ka09ghscxbf0a73d0', 'Kiosk', 'KIOSK', 'AGENT', false, 1, '', 'null', '', 1795340250576, 1795340250576, false, 0, '', 0, 0, '{"settings":{"CAMERA":"BLOCK"}}'),
	('3zt4xj2y011p3fv1f21sssy46g', 'w0d0fh582ka09ghscxbf0a73d0', 'Headsets', 'HEADSETS', 'AGENT', true, 1, '', 'null', '', 1795340250651, 1795340250651, false, 0, '', 0, 0, '{"settings":{}}'),
	('vjj9mr080vvmxev6gt1t3d9914', 'w0d0fh582ka09ghscxbf0a73d0', 'Warehouse', 'WAREHOUSE', 'PLATFORM', false, 2, '', 'null', '', 1795340250396, 1795340250796, false, 2, '', 1795340250809, 1795340250809, '{"cameraAccess":"CAMERA_ACCESS_DISABLED","statusReportingSettings":{"applicationReportsEnabled":true,"applicationReportingSettings":{"includeRemovedApps":false},"deviceSettingsEnabled":true,"displayInfoEnabled":true,"hardwareStatusEnabled":true,"memoryInfoEnabled":true,"networkInfoEnabled":true,"powerManagementEventsEnabled":true,"softwareInfoEnabled":true,"systemPropertiesEnabled":true},"bluetoothDisabled":true}');



INSERT INTO public.policy_pushes VALUES
	('vjj9mr080vvmxev6gt1t3d9914', 1, 1),
	('vjj9mr080vvmxev6gt1t3d9914', 2, 2);



INSERT INTO public.policy_revisions VALUES
	('vjj9mr080vvmxev6gt1t3d9914', 1, 1, 1795340250396, 'SYSTEM', 'operator', 'operator', 'Warehouse', 'CREATE', '', '', 'null', '', '{"cameraAccess":"CAMERA_ACCESS_DISABLED","statusReportingSettings":{"applicationReportsEnabled":true,"applicationReportingSettings":{"includeRemovedApps":false},"deviceSettingsEnabled":true,"displayInfoEnabled":true,"hardwareStatusEnabled":true,"memoryInfoEnabled":true,"networkInfoEnabled":true,"powerManagementEventsEnabled":true,"softwareInfoEnabled":true,"systemPropertiesEnabled":true}}'),
	('wzzktq6qyz1cwy68pbhxmrkttm', 1, 1, 1795340250576, 'SYSTEM', 'operator', 'operator', 'Kiosk', 'CREATE', '', '', 'null', '', '{"settings":{"CAMERA":"BLOCK"}}'),
	('3zt4xj2y011p3fv1f21sssy46g', 1, 1, 1795340250651, 'SYSTEM', 'operator', 'operator', 'Headsets', 'CREATE', '', '', 'null', '', '{"settings":{}}'),
	('vjj9mr080vvmxev6gt1t3d9914', 2, 2, 1795340250796, 'SYSTEM', 'operator', 'operator', 'Warehouse', 'PORTAL', '', '', 'null', '', '{"cameraAccess":"CAMERA_ACCESS_DISABLED","statusReportingSettings":{"applicationReportsEnabled":true,"applicationReportingSettings":{"includeRemovedApps":false},"deviceSettingsEnabled":true,"displayInfoEnabled":true,"hardwareStatusEnabled":true,"memoryInfoEnabled":true,"networkInfoEnabled":true,"powerManagementEventsEnabled":true,"softwareInfoEnabled":true,"systemPropertiesEnabled":true},"bluetoothDisabled":true}');



INSERT INTO public.proposals VALUES
	('prp_aaa3a4rxd64x9b4w2c2mje4c14', 'w0d0fh582ka09ghscxbf0a73d0', 'update_policy_settings', 'PENDING', 'NORMAL', 'Change settings of Warehouse', 'In the policy "Warehouse", which 1 device uses, sets SMS to BLOCK.', 'vjj9mr080vvmxev6gt1t3d9914', 'Warehouse', 2, 'vjj9mr080vvmxev6gt1t3d9914', 'Warehouse', '', 'API_KEY', '30ddahj20sq7jjtc3ddzcbctq8', '', 'ci', 1795340253956, 1795340853956, '', '', '', 0, 0, 0, '', '', '{"changes":[{"setting":"SMS","value":"BLOCK"}]}', '[{"label":"SMS","value":"BLOCK","previousValue":"NOT_SET"}]', '{"cameraAccess":"CAMERA_ACCESS_DISABLED","statusReportingSettings":{"applicationReportsEnabled":true,"applicationReportingSettings":{"includeRemovedApps":false},"deviceSettingsEnabled":true,"displayInfoEnabled":true,"hardwareStatusEnabled":true,"memoryInfoEnabled":true,"networkInfoEnabled":true,"powerManagementEventsEnabled":true,"softwareInfoEnabled":true,"systemPropertiesEnabled":true},"bluetoothDisabled":true,"smsDisabled":true}');












INSERT INTO public.sessions VALUES
	('bn6mywgnqqfebf7mkpsqaam030', 'bc1cd1ebb9aed27a7544a7bc13c83f7a2d7146e684871274cfc01ff8fe74bbcd', 'acm6k4bb7a3fr4d96ndev10drw', 'w0d0fh582ka09ghscxbf0a73d0', 1795340254024, 1795340254024, 1795340254024, '127.0.0.1', 'curl/7.88.1');






INSERT INTO public.signups VALUES
	('38vjfdwygj01rjm800n3a2fjqg', 'w0d0fh582ka09ghscxbf0a73d0', 'signupUrls/C4fe1dd01d1834eced9da78eebda3e38a', 1795340250138, 'enterprises/LCxuh0a6986', 'http://127.0.0.1:28491/signup/C4fe1dd01d1834eced9da78eebda3e38a', '');



INSERT INTO public.users VALUES
	('acm6k4bb7a3fr4d96ndev10drw', 'w0d0fh582ka09ghscxbf0a73d0', 'admin@acme.test', 'admin@acme.test', 'admin', 1023, 'null', '$argon2id$v=19$m=19456,t=2,p=1$PjZcHPg/TmFH5GK71Y+w3Q$+tm04SysieBE4i1Q6LMuWnw085pPxHOrnXFSPwRRzcU', false, 1795340250231, 1795340254024);



SELECT pg_catalog.setval('public.goose_db_version_id_seq', 20, true);




