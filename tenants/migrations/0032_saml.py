"""Identity providers over SAML: where they are asked, and by which certificates they sign."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0031_settled_records"),
    ]

    operations = [
        migrations.AddField(
            model_name="identityprovider",
            name="certificates",
            field=models.TextField(db_default=""),
        ),
        migrations.AddField(
            model_name="identityprovider",
            name="protocol",
            field=models.CharField(
                choices=[("oidc", "Oidc"), ("saml", "Saml")], db_default="oidc", max_length=4
            ),
        ),
        migrations.AddField(
            model_name="identityprovider",
            name="sso_url",
            field=models.CharField(db_default="", max_length=500),
        ),
    ]
