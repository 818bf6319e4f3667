import com.google.api.client.googleapis.json.GoogleJsonResponseException;
import com.google.api.client.http.javanet.NetHttpTransport;
import com.google.api.client.json.gson.GsonFactory;
import com.google.api.services.androidmanagement.v1.AndroidManagement;
import com.google.api.services.androidmanagement.v1.model.*;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;

/** Google's Java client against the emulator, with its defaults: it packs bodies, and sends PATCH as POST. */
class Amapi {
    static final String EMULATOR = System.getenv("EMULATOR");

    static void ok(String step) {
        System.out.println("ok " + step);
    }

    static void check(boolean holds, Object what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static void control(String method, String path, String body) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(EMULATOR + "/emulator/v1" + path))
            .header("Content-Type", "application/json").method(method, HttpRequest.BodyPublishers.ofString(body)).build();
        var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        check(answer.statusCode() == 200, answer.body());
    }

    public static void main(String[] arguments) throws Exception {
        var json = GsonFactory.getDefaultInstance();
        var enterprises = new AndroidManagement.Builder(new NetHttpTransport(), json, null)
            .setRootUrl(EMULATOR + "/").setApplicationName("conformance").build().enterprises();

        var enterprise = enterprises.create(new Enterprise().setEnterpriseDisplayName("Acme"))
            .setProjectId("muster").setAgreementAccepted(true).execute().getName();
        enterprises.patch(enterprise, new Enterprise().setPrimaryColor(255)).setUpdateMask("primaryColor").execute();
        check(enterprises.get(enterprise).execute().getPrimaryColor() == 255, "the color");
        ok("enterprise");

        var name = enterprise + "/policies/rich";
        var rich = json.fromString(Files.readString(Path.of("policy.json")), Policy.class);
        enterprises.policies().patch(name, rich).execute();
        var stored = enterprises.policies().get(name).execute();
        check(stored.equals(rich.setName(name).setVersion(1L)), stored);
        check(enterprises.policies().list(enterprise).setPageSize(1).execute().getPolicies().size() == 1, "the list");
        try {
            enterprises.policies().patch(name, new Policy().set("cameraDisbled", true)).execute();
            throw new AssertionError("an unknown member was taken");
        } catch (GoogleJsonResponseException refused) {
            check(refused.getStatusCode() == 400 && refused.getDetails().getMessage().contains("cameraDisbled"), refused);
        }
        ok("policies");

        var token = enterprises.enrollmentTokens().create(enterprise, new EnrollmentToken().setPolicyName(name).setDuration("86400s"))
                .execute();
        ok("tokens");

        control("POST", "/devices", "{\"enrollmentToken\":\"" + token.getValue() + "\",\"count\":2}");
        var devices = enterprises.devices().list(enterprise).execute().getDevices();
        check(devices.size() == 2, devices);
        var device = devices.get(0).getName();
        enterprises.devices().patch(devices.get(1).getName(), new Device().setState("DISABLED")).setUpdateMask("state").execute();
        ok("devices");

        var operation = enterprises.devices().issueCommand(device, new Command().setType("RESET_PASSWORD").setNewPassword("123456"))
                .execute();
        for (int i = 0; i < 100 && operation.getDone() != Boolean.TRUE; i++) {
            Thread.sleep(100);
            operation = enterprises.devices().operations().get(operation.getName()).execute();
        }
        check(operation.getDone(), operation);
        ok("commands");

        enterprises.devices().delete(device).execute();
        try {
            enterprises.devices().get(device).execute();
            throw new AssertionError("the device is still there");
        } catch (GoogleJsonResponseException refused) {
            check(refused.getStatusCode() == 404, refused);
        }
        enterprises.enrollmentTokens().delete(token.getName()).execute();
        ok("deletes");
    }
}
